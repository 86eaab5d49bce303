"""``tracehunch guess --from TRACE``: a hunch.toml on stdout or in a file."""

import gzip
import tomllib

import pytest

from tracehunch.cli import main
from tracehunch.guess.hunch import parse_hunch


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def _run(*args):
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


def test_the_result_is_on_stdout_and_the_rest_is_not(run, h200):
    code, out, err = run("guess", "--from", h200 / "seeds/naive.json.gz")
    assert code == 0
    hunch = parse_hunch(out)
    assert not hunch.edited
    assert f"{len(hunch.guess.claims)} claims about 1 scope, sealed {hunch.guess.seal[:12]}" in err
    assert out.startswith("# What naive.json.gz shows")


def test_a_file_is_written_whole(run, h200, tmp_path):
    path = tmp_path / "hunch.toml"
    code, out, err = run("guess", "--from", h200 / "seeds/naive.json.gz", "-o", path, "--times")
    assert (code, out) == (0, "")
    assert f"wrote {path}" in err
    document = tomllib.loads(path.read_text())
    assert document["hunch"]["context"]["device"] == "NVIDIA H200"
    assert document["hunch"]["known"] == [
        "hidden-copy in attn_fwd: aten::masked_fill x1",
        "unfused-attention in attn_fwd: aten::_softmax x1",
    ]
    assert document["guess"][0]["gpu_time"].endswith("us")


def test_the_seal_does_not_depend_on_when_it_was_made(run, h200):
    seals = {parse_hunch(run("guess", "--from", h200 / "seeds/naive.json.gz")[1]).sealed for _ in range(2)}
    assert len(seals) == 1


def test_scopes_can_be_chosen(run, h200):
    _, out, _ = run(
        "guess", "--from", h200 / "seeds/naive.json.gz", "--scope", "step", "--scope", "aten::softmax"
    )
    assert [table["scope"] for table in tomllib.loads(out)["guess"]] == ["ProfilerStep", "aten::softmax"]


def test_times_without_a_gpu_are_left_out_and_that_is_said(run, cases):
    code, out, err = run("guess", "--from", cases / "cpu_only_no_dev.json", "--times")
    assert code == 0
    assert "gpu_time" not in out
    assert "no times were claimed" in err


WRONG = [
    ((), "Missing option '--from'"),
    (("--from", "none.json"), "none.json"),
    (("--from", "TRACE", "--scope", "attn_fw"), "did you mean attn_fwd?"),
    (("--from", "TRACE", "-o", "TRACE"), "will not overwrite"),
    (("--from", "TRACE", "-o", "/nowhere/hunch.toml"), "cannot write /nowhere/hunch.toml"),
]


@pytest.mark.parametrize(("args", "said"), WRONG)
def test_mistakes_are_one_line_and_exit_2(run, h200, args, said):
    trace = h200 / "seeds/naive.json.gz"
    before = trace.read_bytes()
    code, out, err = run("guess", *(trace if arg == "TRACE" else arg for arg in args))
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) <= 2
    assert trace.read_bytes() == before


def test_hostile_names_stay_data(run, cases):
    code, out, _ = run("guess", "--from", cases / "injection_a.json")
    assert code == 0
    assert not [character for character in out if ord(character) < 32 and character != "\n"]
    assert parse_hunch(out).guess.claims


def test_a_damaged_file_makes_a_guess_and_a_note(run, h200, tmp_path):
    text = gzip.decompress((h200 / "seeds/naive.json.gz").read_bytes())
    cut = tmp_path / "cut.json"
    cut.write_bytes(text[: len(text) * 9 // 10])
    code, out, err = run("guess", "--from", cut)
    assert code == 0
    assert parse_hunch(out).guess.claims
    assert "cut.json is damaged" in err


def test_a_trace_in_the_folder_that_is_read_is_not_overwritten(run, h200, tmp_path):
    trace = tmp_path / "run.pt.trace.json.gz"
    trace.write_bytes((h200 / "seeds/naive.json.gz").read_bytes())
    code, _, err = run("guess", "--from", tmp_path, "-o", trace)
    assert code == 2
    assert "will not overwrite" in err
    assert trace.read_bytes() == (h200 / "seeds/naive.json.gz").read_bytes()
    assert run("guess", "--from", tmp_path, "-o", tmp_path / "hunch.toml")[0] == 0
