"""``tracehunch guess --why TRACE``: options, formats, and what it complains of."""

import json

import pytest

from tracehunch.cli import main


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def _run(*args):
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


def test_a_surprise_is_explained_and_fails_nothing(run, h200):
    code, out, err = run(
        "guess", "--why", h200 / "ops/gqa_math.json.gz", "--torch", "2.11", "--cudnn", "91900"
    )
    assert (code, err) == (0, "")
    assert "3 SDPA calls: 3 surprises" in out
    assert "NVIDIA H200, torch 2.11, as given" in out


def test_the_extension_picks_the_format(run, h200, tmp_path):
    path = tmp_path / "why.json"
    code, out, err = run("guess", "--why", h200 / "ops/gqa_auto.json.gz", "-o", path)
    assert (code, out) == (0, "")
    assert f"wrote {path}" in err
    assert json.loads(path.read_text())["why"]["calls"]["as_predicted"] == 3
    _, out, _ = run("guess", "--why", h200 / "ops/gqa_auto.json.gz", "--format", "markdown")
    assert out.startswith("## Why SDPA ran what it did")


def test_a_folder_and_stdin_name_what_was_taken(run, h200):
    _, out, _ = run("guess", "--why", h200 / "ranks/ddp")
    assert out.splitlines()[0].endswith(".json.gz")


def test_another_gpu_is_another_answer(run, h200):
    _, out, _ = run(
        "guess", "--why", h200 / "ops/gqa_auto.json.gz", "--gpu", "a100-80-sxm", "--torch", "2.13"
    )
    assert "A100 80GB SXM" in out
    assert "ran cudnn, where flash was to be expected" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--torch", "2.4"), "torch '2.4' is not among the versions whose rules are known"),
        (("--gpu", "h20"), "GPU 'h20' is not known"),
        (("--cudnn", "9"), "9 is no cuDNN version"),
        (("--times",), "--times goes with --from"),
        (("--scope", "x"), "--scope goes with --from"),
        (("--from", "x.json"), "--from and --why exclude each other"),
        (("-o", "why.xyz"), "the extension names no format"),
    ],
)
def test_odd_options_are_told(run, h200, options, said):
    code, out, err = run("guess", "--why", h200 / "ops/gqa_auto.json.gz", *options)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) <= 2


def test_options_of_why_do_not_go_with_from(run, h200):
    code, _, err = run("guess", "--from", h200 / "ops/gqa_auto.json.gz", "--torch", "2.11")
    assert code == 2
    assert "--torch goes with --why" in err


def test_a_file_that_is_no_trace_is_an_error(run, cases):
    code, _, err = run("guess", "--why", cases / "not_json_html.json")
    assert code == 2
    assert "Traceback" not in err


def test_the_input_is_never_overwritten(run, h200):
    path = h200 / "ops/gqa_auto.json.gz"
    code, _, err = run("guess", "--why", path, "-o", path, "--format", "json")
    assert code == 2
    assert "will not overwrite" in err


def test_a_gpu_for_calls_on_a_cpu_changes_nothing_and_that_is_said(run, cpu):
    code, out, err = run("guess", "--why", cpu / "sdpa_math.json.gz", "--gpu", "h200")
    assert code == 0
    assert "a CPU, torch 2.13.0+cpu" in out
    assert err == "tracehunch: --gpu changes nothing: no call ran on a GPU\n"
