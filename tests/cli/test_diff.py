"""``tracehunch diff``: exit codes, formats, what is said on which stream."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tracehunch.cli import main

NAIVE, INPLACE = "seeds/shapes_naive.json.gz", "seeds/shapes_naive_inplace.json.gz"
PREFILL, PADDED = "models/llama_sdpa_prefill.json.gz", "models/llama_sdpa_padded.json.gz"


@pytest.fixture
def run(capsys, h200):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def _run(*args):
        named = [
            h200 / str(arg) if str(arg).endswith(".json.gz") and "/" in str(arg) else arg for arg in args
        ]
        with pytest.raises(SystemExit) as stop:
            main(["diff", *map(str, named)])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


@pytest.fixture
def sound(tmp_path, h200):
    """Both variants without the activities from before the window, which count as lost data."""
    paths = []
    for name in (NAIVE, INPLACE):
        with gzip.open(h200 / name) as file:
            loaded = json.load(file)
        host = [e for e in loaded["traceEvents"] if e.get("cat") in ("cuda_runtime", "cuda_driver")]
        known = {event["args"].get("correlation") for event in host}
        loaded["traceEvents"] = [
            event
            for event in loaded["traceEvents"]
            if not str(event.get("cat")).startswith(("kernel", "gpu_mem"))
            or event["args"]["correlation"] in known
        ]
        paths.append(tmp_path / name.rpartition("/")[2].replace(".gz", ""))
        paths[-1].write_text(json.dumps(loaded))
    return paths


def test_the_default_never_fails(run):
    code, out, err = run(INPLACE, NAIVE)
    assert (code, err) == (0, "")
    assert "attn_fwd is slower" in out


@pytest.mark.parametrize(("level", "code"), [("note", 1), ("warning", 1), ("error", 0), ("never", 0)])
def test_slower_is_a_warning(run, level, code):
    assert run(INPLACE, NAIVE, "--fail-on", level)[0] == code


def test_why_it_failed_is_one_line_on_stderr(run):
    code, _, err = run(INPLACE, NAIVE, "--fail-on", "warning")
    assert code == 1
    assert err.startswith("tracehunch: exit 1: attn_fwd is slower: GPU time 937.0 us -> 1.063 ms")
    assert err.endswith("(--fail-on warning)\n")
    assert len(err.splitlines()) == 1


def test_faster_is_fine(run):
    assert run(NAIVE, INPLACE, "--fail-on", "warning")[0] == 0


def test_strict_fails_on_lost_data_before_all_else(run):
    code, out, err = run(INPLACE, NAIVE, "--strict", "--fail-on", "warning")
    assert code == 3
    assert "a file is damaged, or data was lost (outside-window" in err
    assert out


def test_strict_passes_sound_files_that_tell_all(run, sound):
    assert run(sound[0], sound[0], "--strict")[0] == 0
    assert run(*sound, "--strict", "--fail-on", "warning")[0] == 0
    assert run(*reversed(sound), "--strict", "--fail-on", "warning")[0] == 1


def test_strict_fails_on_what_cannot_be_told(run, sound, cpu):
    code, _, err = run(cpu / "naive.json.gz", sound[0], "--strict")
    assert code == 3
    assert "gpu_time cannot be told (--strict)" in err
    assert run(cpu / "naive.json.gz", sound[0], "--fail-on", "note")[0] == 0


def test_formats(run, tmp_path):
    report = json.loads(run(NAIVE, INPLACE, "--format", "json")[1])
    assert (report["schema"], report["scopes"][0]["changes"][0]["kind"]) == ("tracehunch/1", "went")
    assert run(NAIVE, INPLACE, "--format", "markdown")[1].startswith("<!-- tracehunch:diff -->\n\n## ")
    for name, start in (("out.json", "{"), ("out.md", "<!-- tracehunch:diff -->"), ("out.txt", "before ")):
        code, out, err = run(NAIVE, INPLACE, "-o", tmp_path / name)
        assert (code, out) == (0, "")
        assert f"wrote {tmp_path / name}" in err
        assert (tmp_path / name).read_text().startswith(start)


def test_the_same_files_give_the_same_bytes(run):
    assert run(PREFILL, PADDED, "--format", "json")[1] == run(PREFILL, PADDED, "--format", "json")[1]


def test_an_input_is_never_overwritten(run, sound):
    before = sound[1].read_bytes()
    code, _, err = run(*sound, "-o", sound[1])
    assert code == 2
    assert "it is an input" in err
    assert sound[1].read_bytes() == before


def test_a_folder_is_its_newest_trace(run, tmp_path, h200):
    for name, age in ((NAIVE, 1), (INPLACE, 2)):
        shutil.copy(h200 / name, tmp_path)
        os.utime(tmp_path / name.rpartition("/")[2], (age, age))
    code, out, _ = run(NAIVE, tmp_path)
    assert code == 0
    assert f"{tmp_path}/shapes_naive_inplace.json.gz" in out.replace("\n          ", "")
    assert "attn_fwd is faster" in out
    taken = "the newest trace in the folder, was taken; the others: shapes_naive.json.gz"
    assert taken in " ".join(out.split())  # where lines break depends on the length of the path


def test_standard_input_is_one_of_the_two(h200):
    command = [sys.executable, "-m", "tracehunch", "diff", str(h200 / NAIVE), "-", "--format", "json"]
    done = subprocess.run(command, input=(h200 / INPLACE).read_bytes(), capture_output=True, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout)["scopes"][0]["changes"][0]["kind"] == "went"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("-", "-"), "standard input can be one of the traces, not both"),
        ((NAIVE,), "Missing argument 'AFTER'"),
        ((NAIVE, INPLACE, "--scope", "attn_fwd"), "write BEFORE=AFTER"),
        ((NAIVE, INPLACE, "--scope", "attn_fwd=sdpa"), "has no scope 'sdpa'"),
        ((NAIVE, INPLACE, "-o", "x.pdf"), "names no format"),
        ((NAIVE, "no/such.json"), "no/such.json"),
    ],
)
def test_errors_are_told_in_a_line_or_two(run, args, said):
    code, out, err = run(*args)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) <= 2


def test_scopes_are_mapped_by_hand(run):
    _, out, _ = run(
        NAIVE, "seeds/shapes_sdpa_flash.json.gz", "--scope", "attn_fwd=sdpa_fwd", "--format", "json"
    )
    report = json.loads(out)
    assert (report["scopes"][0]["matched"], report["notes"]) == ("given", [])
    found = run(NAIVE, "seeds/shapes_sdpa_flash.json.gz")[1]
    assert "attn_fwd -> sdpa_fwd" in found
    assert "--scope BEFORE=AFTER" in found


def test_a_name_that_holds_the_sign_is_mapped_too(run, tmp_path, h200):
    with gzip.open(h200 / NAIVE, "rt") as file:
        text = file.read().replace('"attn_fwd"', '"a=b"')
    (tmp_path / "named.json").write_text(text)
    _, out, _ = run(tmp_path / "named.json", NAIVE, "--scope", "a=b=attn_fwd", "--format", "json")
    assert json.loads(out)["scopes"][0]["matched"] == "given"


def test_a_damaged_file_is_used_and_said(run, tmp_path, h200):
    text = gzip.decompress((h200 / NAIVE).read_bytes())
    (tmp_path / "cut.json").write_bytes(text[: len(text) * 2 // 3])
    code, out, _ = run(NAIVE, tmp_path / "cut.json")
    assert code == 0
    assert "the trace after is not whole: truncated" in out
    assert run(NAIVE, tmp_path / "cut.json", "--strict")[0] == 3


def test_another_kind_of_file_is_an_error(run, tmp_path):
    (tmp_path / "x.json").write_text('{"a": 1}')
    code, out, err = run(tmp_path / "x.json", NAIVE)
    assert (code, out) == (2, "")
    assert "no traceEvents" in err


def test_it_is_listed_and_explained():
    done = subprocess.run(
        [sys.executable, "-m", "tracehunch", "--help"], capture_output=True, text=True, check=True
    )
    assert "diff" in done.stdout
    command = [sys.executable, "-m", "tracehunch", "diff", "--help"]
    help_ = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "BEFORE AFTER" in help_
    assert "same within noise" in help_


def test_the_docs_show_what_is_printed(monkeypatch, capsys):
    root = Path(__file__).parents[2]
    fence = re.search(
        r"```\n\$ tracehunch diff (\S+) (\S+)\n(.*?)```", (root / "docs/diff.md").read_text(), re.DOTALL
    )
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["diff", fence[1], fence[2]])
    assert capsys.readouterr().out == fence[3]
