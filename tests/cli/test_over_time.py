"""``tracehunch look --over-time``: what it takes, exit codes, what is refused."""

import json
import shutil
from pathlib import Path

import pytest

from tracehunch.cli import main

RUNS = Path(__file__).parents[1] / "data" / "over_time"


@pytest.fixture
def run(capsys):
    def _run(*args):
        with pytest.raises(SystemExit) as stop:
            main(["look", *map(str, args)])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


def test_folder_pattern_and_files_are_the_same_run(run):
    files = sorted((RUNS / "sleep").iterdir(), reverse=True)
    told = [
        json.loads(run("--over-time", "--format", "json", *paths)[1])["over_time"]["runs"][0]["changes"]
        for paths in ([RUNS / "sleep"], [f"{RUNS}/sleep/*.gz"], files)
    ]
    assert told[0] == told[1] == told[2]
    assert told[0][0]["scope"] == "load"


def test_exit_codes(run):
    assert run("--over-time", RUNS / "sleep")[0] == 0
    code, _, err = run("--over-time", RUNS / "sleep", "--fail-on", "warning")
    assert (code, "1 change over time" in err) == (1, True)
    assert run("--over-time", RUNS / "nothing", "--fail-on", "note")[0] == 0


def test_damaged_file_is_said_and_strict_fails(run, tmp_path):
    for path in (RUNS / "nothing").iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "broken.pt.trace.json").write_text("no trace at all")
    code, out, _ = run("--over-time", tmp_path)
    assert code == 0
    assert "not read:" in out
    assert run("--over-time", tmp_path, "--strict")[0] == 3


def test_nothing_to_read_is_an_error(run, tmp_path):
    code, out, err = run("--over-time", tmp_path)
    assert (code, out) == (2, "")
    assert "nothing to read in" in err


def test_one_scope(run):
    code, out, _ = run("--over-time", RUNS / "backend", "--scope", "forward")
    assert code == 0
    assert "forward: slower from between steps 35 and 39" in out
    assert "attention:" not in out
    code, _, err = run("--over-time", RUNS / "backend", "--scope", "forwrd")
    assert (code, "forward" in err) == (2, True)


def test_several_traces_need_a_question(run):
    first, second, *_ = (RUNS / "nothing").iterdir()
    code, _, err = run(first, second)
    assert (code, "--over-time" in err) == (2, True)


@pytest.mark.parametrize("option", ["--table", "--critical-path"])
def test_one_report_at_a_time(run, option):
    assert run("--over-time", option, RUNS / "nothing")[0] == 2


def test_no_trace_is_overwritten(run, tmp_path):
    for path in (RUNS / "nothing").iterdir():
        shutil.copy(path, tmp_path)
    target = next(tmp_path.iterdir())
    before = target.read_bytes()
    assert run("--over-time", tmp_path, "--format", "json", "-o", target)[0] == 2
    assert target.read_bytes() == before


def test_page(run, tmp_path):
    target = tmp_path / "changes.html"
    code, out, err = run("--over-time", RUNS / "backend", "-o", target)
    assert (code, out, "wrote" in err) == (0, "", True)
    page = target.read_text()
    assert page.startswith("<!doctype html>")
    assert "attention: slower from between steps 35 and 39" in page
    assert run("--over-time", "--format", "html", RUNS / "backend")[1] == page


def test_github(run, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    code, out, err = run("--over-time", RUNS / "backend", "--format", "github", "--fail-on", "warning")
    assert (code, "--fail-on warning" in err) == (1, True)
    first, *_, last = out.splitlines()
    assert first.startswith(
        "::warning title=over time%3A attention%3A slower from between steps 35 and 39 (cycle 4 of 6) on::"
    )
    assert "why: attention moved from the flash to the math backend" in first
    assert last == f"tracehunch: {RUNS / 'backend'}: changes over time: 1 warning"
    assert "**warning** attention: slower" in summary.read_text()
    assert run("--over-time", RUNS / "backend", "--format", "github", "-o", tmp_path / "x.txt")[0] == 2
