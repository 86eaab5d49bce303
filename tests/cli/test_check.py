"""``tracehunch check``: the exit codes, and what is said on which stream."""

import gzip
import json
import subprocess
import sys

import pytest

from tracehunch.cli import main

BY_HAND = '[hunch]\nknown = ["unfused-attention in attn_fwd"]\n'
HOLDS = BY_HAND + '[[guess]]\nscope = "attn_fwd"\nkernels = 5\nmemsets = 1\n'
BREAKS = BY_HAND + '[[guess]]\nscope = "attn_fwd"\nkernels = 4\n'
UNTOLD = BY_HAND + '[[guess]]\nscope = "attn_fwd"\nkernels = 5\nbound = "memory"\n'


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def _run(*args):
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


@pytest.fixture
def hunch(tmp_path):
    """A function that writes a hunch.toml."""

    def _hunch(text):
        path = tmp_path / "hunch.toml"
        path.write_text(text)
        return path

    return _hunch


@pytest.fixture
def inplace(h200):
    """A trace with no finding but that its attention is by hand, which the guesses know."""
    return h200 / "seeds/naive_inplace.json.gz"


@pytest.fixture
def truncated(inplace, tmp_path):
    """The same, cut in its last tenth."""
    text = gzip.decompress(inplace.read_bytes())
    path = tmp_path / "truncated.json"
    path.write_bytes(text[: len(text) * 9 // 10])
    return path


def other_gpu(source, target, name="NVIDIA A100-SXM4-80GB"):
    """Copy a trace as if it were from another GPU; with no name, from one that the file does not name."""
    document = json.loads(gzip.decompress(source.read_bytes()))
    if name:
        for device in document["deviceProperties"]:
            device.update(name=name, computeMajor=8, computeMinor=0)
    else:
        del document["deviceProperties"]
    target.write_text(json.dumps(document))
    return target


SOUND = '[[guess]]\nscope = "sdpa_fwd"\n'
MATRIX = [  # claims, options, exit code
    ("kernels = 1", (), 0),
    ("kernels = 1", ("--strict",), 0),
    ("kernels = 1", ("--fail-on", "note"), 1),  # a finding
    ("kernels = 0", (), 1),
    ("kernels = 0", ("--strict",), 1),
    ("kernels = 0", ("--fail-on", "error"), 1),
    ("kernels = 0", ("--fail-on", "never"), 0),
    ("kernels = 2", (), 1),  # fewer than claimed is a warning
    ("kernels = 2", ("--fail-on", "error"), 0),
    ('kernels = 1\nbound = "memory"', (), 0),
    ('kernels = 1\nbound = "memory"', ("--strict",), 3),
    ('kernels = 1\nbound = "memory"', ("--strict", "--fail-on", "never"), 3),
    ('kernels = 0\nbound = "memory"', ("--strict",), 1),
    ("", (), 2),
    ("kernels = ", (), 2),
    ("kernel = 1", (), 2),
]


@pytest.mark.parametrize("case", MATRIX)
def test_exit_codes(run, hunch, h200, case):
    claims, options, code = case
    trace = h200 / "seeds/sdpa_flash.json.gz"  # sound, and with no finding above a note
    assert run("check", hunch(SOUND + claims), trace, *options)[0] == code


def test_a_damaged_file_fails_with_strict_only(run, hunch, truncated):
    path = hunch(BY_HAND + '[[guess]]\nscope = "*"\nsyncs = "<= 5"\n')
    assert run("check", path, truncated)[0] == 0
    assert run("check", path, truncated, "--strict")[0] == 3
    assert run("check", path, truncated, "--strict", "--fail-on", "never")[0] == 3


def test_what_cannot_be_told_is_never_silent(run, hunch, inplace):
    code, out, err = run("check", hunch(UNTOLD), inplace)
    assert code == 0
    assert "1 cannot tell" in out
    assert "tensor shapes were not recorded; record with record_shapes=True" in " ".join(out.split())
    assert "1 claim could not be told from this trace; --strict makes that a failure" in err


def test_an_unknown_scope_cannot_be_told(run, hunch, h200):
    path = hunch(HOLDS.replace("attn_fwd", "spda_fwd"))
    trace = h200 / "seeds/sdpa_flash.json.gz"
    code, out, err = run("check", path, trace, "--strict")
    assert code == 3
    assert "did you mean sdpa_fwd?" in " ".join(out.split())
    assert "exit 3: 2 claims could not be told (--strict)" in err
    code, _, err = run("check", path, trace)
    assert code == 0
    assert err.count("not checked, as the trace has no scope 'spda_fwd': did you mean sdpa_fwd?") == 1


WHY = [
    (HOLDS, (), "exit 1: finding hidden-copy in attn_fwd is a warning (--fail-on error would pass)"),
    (
        BREAKS,
        (),
        "exit 1: kernels in attn_fwd is a surprise (error), and 1 more (--fail-on never would pass)",
    ),
    (
        BREAKS,
        ("--fail-on", "error"),
        "kernels in attn_fwd is a surprise (error) (--fail-on never would pass)",
    ),
    (
        UNTOLD,
        ("--strict", "--fail-on", "error"),
        "exit 3: the file is damaged, or data was lost (outside-window) (--strict)",
    ),
]


@pytest.mark.parametrize("case", WHY)
def test_the_last_line_says_why_it_fails(run, hunch, h200, case):
    claims, options, why = case
    _, _, err = run("check", hunch(claims), h200 / "seeds/naive.json.gz", *options)
    assert why in err.splitlines()[-1]


def test_without_failure_nothing_is_said_of_the_exit_code(run, hunch, inplace):
    assert "exit" not in run("check", hunch(HOLDS), inplace)[2]


def test_a_surprise_is_printed_with_guess_and_sight(run, hunch, inplace):
    _, out, _ = run("check", hunch(BREAKS), inplace)
    assert "error  kernels in attn_fwd" in out
    assert "guessed 4 (user), saw 5" in out


def test_findings_count_unless_they_were_known(run, hunch, h200, tmp_path):
    naive = h200 / "seeds/naive.json.gz"
    assert run("check", hunch(HOLDS), naive)[0] == 1
    assert run("check", hunch(HOLDS), naive, "--fail-on", "error")[0] == 0
    baseline = tmp_path / "baseline.toml"
    assert run("guess", "--from", naive, "-o", baseline)[0] == 0
    for trace in ("naive", "shapes_naive"):
        code, out, err = run("check", baseline, h200 / f"seeds/{trace}.json.gz", "--fail-on", "note")
        assert code == 0
        assert "hidden-copy in attn_fwd" in out
        assert "2 findings known when the guess was made: no failure" in err


def test_findings_that_the_baseline_does_not_know_fail(run, h200, tmp_path):
    naive = h200 / "seeds/naive.json.gz"
    baseline = tmp_path / "baseline.toml"
    run("guess", "--from", naive, "-o", baseline)
    text = baseline.read_text()
    for known, code in (
        ("hidden-copy in attn_fwd: aten::masked_fill x1", 0),
        ("hidden-copy in attn_fwd: aten::masked_fill x2", 0),  # there are fewer now
        ("hidden-copy in attn_fwd: aten::masked_fill x0.5", 1),  # it has grown
        ("hidden-copy in attn_fwd: aten::reshape x1", 1),  # that was another
        ("hidden-copy in elsewhere: aten::masked_fill x1", 1),
        ("hidden-copy in attn_fwd", 0),  # all of that kind, as a person may write
    ):
        baseline.write_text(text.replace("hidden-copy in attn_fwd: aten::masked_fill x1", known))
        assert run("check", baseline, naive)[0] == code, known


def test_a_baseline_breaks_on_another_implementation(run, h200, inplace, tmp_path):
    baseline = tmp_path / "baseline.toml"
    run("guess", "--from", h200 / "seeds/naive.json.gz", "-o", baseline)
    code, out, _ = run("check", baseline, inplace)
    assert code == 1
    assert "  copies in attn_fwd" in out
    assert "guessed 1 (baseline), saw 0" in out


def test_times_of_other_hardware_are_refused(run, inplace, tmp_path):
    baseline = tmp_path / "baseline.toml"
    foreign = other_gpu(inplace, tmp_path / "a100.json")
    run("guess", "--from", inplace, "--times", "-o", baseline)
    assert run("check", baseline, inplace)[0] == 0
    code, out, err = run("check", baseline, foreign)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    for part in ("NVIDIA H200", "NVIDIA A100-SXM4-80GB", "tracehunch guess --from TRACE --times"):
        assert part in err


@pytest.mark.parametrize(
    ("context", "named"),
    [
        ('compute_capability = "9.0"\ngpu = "H200 SXM"', "claimed for H200 SXM"),
        ('compute_capability = "9.0"\ndevice = "NVIDIA H200"', "claimed for NVIDIA H200"),
        ('compute_capability = "9.0"', "claimed for compute capability 9.0"),
    ],
)
def test_times_of_a_gpu_say_which_where_the_trace_names_none(run, h200, tmp_path, context, named):
    hunch = tmp_path / "hunch.toml"
    hunch.write_text(f'[hunch.context]\n{context}\n[[guess]]\nscope = "step"\ngpu_time = "< 1ms"\n')
    out = " ".join(run("check", hunch, h200 / "../cpu/naive.json.gz")[1].split())
    assert "gpu_time in ProfilerStep: the trace names no GPU" in out
    assert named in out


def test_without_times_other_hardware_is_a_note(run, inplace, tmp_path):
    baseline = tmp_path / "baseline.toml"
    run("guess", "--from", inplace, "-o", baseline)
    code, _, err = run("check", baseline, other_gpu(inplace, tmp_path / "a100.json"))
    assert code == 0
    assert "made for device NVIDIA H200, the trace is of NVIDIA A100-SXM4-80GB" in err


def test_times_cannot_be_told_where_the_trace_names_no_gpu(run, inplace, tmp_path):
    baseline = tmp_path / "baseline.toml"
    nameless = other_gpu(inplace, tmp_path / "nameless.json", "")
    run("guess", "--from", inplace, "--times", "-o", baseline)
    code, out, _ = run("check", baseline, nameless)
    assert code == 0
    assert "1 cannot tell" in out
    assert run("check", baseline, nameless, "--strict")[0] == 3


def test_an_edit_after_sealing_is_noted(run, inplace, tmp_path):
    baseline = tmp_path / "baseline.toml"
    run("guess", "--from", inplace, "-o", baseline)
    assert "edited" not in run("check", baseline, inplace)[2]
    baseline.write_text(baseline.read_text().replace("kernels = 5", 'kernels = "<= 5"'))
    code, _, err = run("check", baseline, inplace)
    assert code == 0
    assert "was edited after it was sealed" in err


def test_the_json_embeds_the_verdict(run, hunch, inplace):
    untold = UNTOLD.removeprefix(BY_HAND).replace("kernels = 5\n", "")
    code, out, _ = run("check", hunch(BREAKS + untold), inplace, "--format", "json")
    report = json.loads(out)
    assert code == 1
    assert report["schema"] == "tracehunch/1"
    (surprise,) = report["verdict"]["surprises"]
    assert {
        key: surprise[key] for key in ("key", "relation", "expected", "seen", "unit", "scope", "who")
    } == {
        "key": "kernels",
        "relation": "==",
        "expected": 4,
        "seen": 5,
        "unit": "count",
        "scope": "attn_fwd",
        "who": "user",
    }
    assert surprise["severity"] == "error"
    assert surprise["evidence"]
    assert report["verdict"]["cannot_tell"] == [
        {
            "key": "bound",
            "scope": "attn_fwd",
            "reason": "tensor shapes were not recorded",
            "record_with": "record_shapes=True",
        }
    ]


def test_the_same_input_gives_the_same_bytes(run, hunch, inplace):
    path = hunch(BREAKS)
    assert (
        run("check", path, inplace, "--format", "json")[1]
        == run("check", path, inplace, "--format", "json")[1]
    )


def test_the_report_is_written_whole_and_no_input_is_changed(run, hunch, inplace, tmp_path):
    path = hunch(HOLDS)
    assert run("check", path, inplace, "-o", tmp_path / "report.md")[0] == 0
    assert "Verdict: 2 held" in (tmp_path / "report.md").read_text()
    code, _, err = run("check", path, inplace, "--format", "json", "-o", path)
    assert code == 2
    assert "will not overwrite" in err
    assert path.read_text() == HOLDS


WRONG = [
    (("check",), "Missing argument"),
    (("check", "none.toml", "none.json"), "cannot read none.toml"),
    (("check", "TRACE", "HUNCH"), "name a hunch.toml, then a trace"),
    (("check", "HUNCH", "none.json"), "none.json"),
]


@pytest.mark.parametrize(("args", "said"), WRONG)
def test_what_cannot_be_read_is_one_line_and_exit_2(run, hunch, inplace, args, said):
    named = {"TRACE": inplace, "HUNCH": hunch(HOLDS)}
    code, out, err = run(*(named.get(arg, arg) for arg in args))
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) <= 2
    assert "Traceback" not in err


def test_it_runs_as_users_run_it(hunch, inplace):
    command = [sys.executable, "-m", "tracehunch", "check", str(hunch(BREAKS)), "-"]
    with inplace.open("rb") as trace:
        done = subprocess.run(command, stdin=trace, capture_output=True, check=False)
    assert done.returncode == 1
    assert b"guessed 4 (user), saw 5" in done.stdout


def test_all_shows_every_finding(run, hunch, h200):
    trace = h200 / "models/llama_eager_prefill.json.gz"
    path = hunch('[[guess]]\nscope = "*"\nsyncs = "<= 50"\n')
    assert "--all shows all of them" in " ".join(run("check", path, trace)[1].split())
    assert "--all shows" not in run("check", path, trace, "--all")[1]
