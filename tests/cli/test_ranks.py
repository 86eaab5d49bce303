"""``tracehunch ranks``: exit codes, formats, what goes wrong in one line while the rest goes on."""

import json
import os
import shutil
import sys

import pytest
from tests.trace.served import served

import tracehunch
from tracehunch.cli import common, main
from tracehunch.errors import TracehunchError
from tracehunch.trace import remote


@pytest.fixture
def run(capsys):
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def _run(*args):
        with pytest.raises(SystemExit) as stop:
            main(["ranks", *map(str, args)])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


@pytest.fixture
def job(h200, tmp_path):
    folder = tmp_path / "job"
    shutil.copytree(h200 / "ranks" / "tp", folder)
    return folder


def test_the_default_never_fails_and_ends_with_a_command(run, job):
    code, out, err = run(job)
    assert (code, err) == (0, "")
    assert "2 of 2" in out
    assert "straggler" in out
    assert out.splitlines()[-1].startswith("Next: tracehunch ")


def test_a_folder_its_files_a_pattern_and_urls_say_the_same(run, job):
    pytest.importorskip("fsspec")
    _, folder, _ = run(job, "--format", "json")
    files = sorted(job.iterdir())
    assert run(*reversed(files), "--format", "json")[1] == folder
    assert run(f"{job}/rank?.json.gz", "--format", "json")[1] == folder
    with served(job) as url:
        assert run(url, "--format", "json")[1] == folder
        assert run(f"{url}rank0.json.gz", files[1], "--format", "json")[1] == folder


def test_every_format_goes_to_a_file_of_its_extension(run, job, tmp_path):
    pytest.importorskip("pyarrow")
    names = ["r.txt", "r.json", "r.md", "r.html", "r.parquet"]
    outputs = [argument for name in names for argument in ("-o", tmp_path / name)]
    code, out, err = run(job, *outputs)
    assert (code, out) == (0, "")
    assert [line.rpartition("/")[2] for line in err.splitlines()] == names
    assert json.loads((tmp_path / "r.json").read_text())["schema"] == "tracehunch/1"
    assert (tmp_path / "r.html").read_bytes().startswith(b"<!doctype html>")
    assert (tmp_path / "r.parquet").read_bytes()[:4] == b"PAR1"
    assert (tmp_path / "r.md").read_text().startswith("<!-- tracehunch:ranks -->")


def test_github(run, job, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    code, out, _ = run(job, "--format", "github")
    assert code == 0
    assert out.startswith("::")
    assert "tracehunch ranks" in (tmp_path / "summary.md").read_text()


def test_a_finding_fails_where_it_is_asked_to(run, job):
    code, _, err = run(job, "--fail-on", "note")
    assert code == 1
    assert err.startswith("tracehunch: exit 1: ")
    assert "(--fail-on note)" in err


def test_a_missing_rank_is_lost_data(run, job):
    assert run(job / "rank0.json.gz")[0] == 0
    code, _, err = run(job / "rank0.json.gz", "--strict")
    assert (code, err) == (3, "tracehunch: exit 3: 1 rank missing (--strict)\n")


def test_what_cannot_be_read_is_said_and_the_rest_goes_on(run, job, tmp_path):
    (job / "rank2.json").touch()
    code, out, err = run(job, tmp_path / "none.json")
    assert (code, err) == (0, "")
    assert "rank2.json" in out
    assert "the file is empty" in " ".join(out.split())
    assert "none.json" in out
    code, out, err = run(job, "--strict", "-o", tmp_path / "r.json")
    assert code == 3
    assert "1 file could not be read; the report says which and why" in err
    assert "exit 3: 1 file could not be read" in err
    assert json.loads((tmp_path / "r.json").read_text())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("none.json",), "none.json: cannot be opened: there is no such file"),
        (("-",), "standard input is not read here"),
        (("JOB", "--scheduler", "tcp://h:1", "--engine", "local"), "--scheduler is of --engine dask"),
        (("JOB", "-o", "nowhere/r.json"), "cannot write nowhere/r.json: there is no such folder"),
        (("JOB", "-o", "r.xyz"), "the extension names no format (.txt, .json"),
        (("JOB", "-o", "r.parquet", "--format", "json"), "is Parquet by its name"),
        (("JOB", "-o", "r.json", "--format", "github"), "leave -o out"),
        (("JOB", "--workers", "0"), "0 is not in the range"),
        (("JOB", "--max-memory", "much"), "is no size"),
        (("JOB", "--max-memory", "1MB"), "reading it takes about"),
    ],
)
def test_what_cannot_work_is_one_line_and_nothing_is_written(arguments, said, run, job, monkeypatch):
    monkeypatch.chdir(job.parent)
    code, out, err = run(*(job if argument == "JOB" else argument for argument in arguments))
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) <= 2
    assert [path.name for path in job.parent.iterdir()] == ["job"]


def test_a_folder_that_may_not_be_written_to_is_said_before_anything_is_read(run, job, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # to root nothing is forbidden
    code, _, err = run("none.json", "-o", job.parent / "r.json")
    assert code == 2
    assert "r.json: permission denied; choose another place with -o" in err


def test_an_output_that_fails_does_not_cost_the_others(run, job, tmp_path, monkeypatch):
    write_whole = common.write_whole

    def full(path, data):
        if path.suffix == ".html":
            raise TracehunchError(f"cannot write {path}", "No space left on device")
        write_whole(path, data)

    monkeypatch.setattr(common, "write_whole", full)
    code, _, err = run(job, "-o", tmp_path / "r.html", "-o", tmp_path / "r.json")
    assert code == 2
    assert err.endswith("r.html: No space left on device\n")
    assert json.loads((tmp_path / "r.json").read_text())
    assert not (tmp_path / "r.html").exists()


def test_no_input_is_overwritten(run, job):
    first = job / "rank0.json.gz"
    before = first.read_bytes()
    for path in (job, f"{job}/*.gz"):
        code, _, err = run(path, "--format", "json", "-o", first)
        assert code == 2
        assert "will not overwrite" in err
    assert first.read_bytes() == before


def test_parquet_without_its_package_is_said_before_anything_is_read(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run(tmp_path / "none.json", "-o", tmp_path / "r.parquet")
    assert code == 2
    assert "pip install 'tracehunch[parquet]'" in err


def test_a_folder_without_a_trace_says_what_was_passed_over(run, tmp_path):
    (tmp_path / "notes.txt").touch()
    code, _, err = run(tmp_path)
    assert code == 2
    assert "no trace in " in err
    assert "1 of 1 file passed over as no traces: 1 not named *.json" in err


def test_dask_without_its_package(run, job, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run(job, "--scheduler", "tcp://127.0.0.1:8786")
    assert code == 2
    assert "pip install 'tracehunch[dask]'" in err


def test_look_takes_a_url(job, capsys, monkeypatch):
    pytest.importorskip("fsspec")
    monkeypatch.setattr(remote, "PATIENCE_S", 10.0)
    with served(job) as url, pytest.raises(SystemExit) as stop:
        main(["look", f"{url}rank1.json.gz"])
    assert stop.value.code == 0
    assert "rank1.json.gz" in capsys.readouterr().out


@pytest.mark.parametrize("verb", ["ranks", "look", "check", "diff", "over-time"])
def test_passwords_and_signatures_are_in_no_output(verb, job, tmp_path, capsys):
    """Reports are sent around, and logs of CI are read by many."""
    pytest.importorskip("fsspec")
    (tmp_path / "h.toml").write_text('[[guess]]\nscope = "whole"\nkernels = 1\n')
    with served(job) as url:
        secret = url.replace("//", "//user:secret@")
        traces = [f"{secret}rank{rank}.json.gz?token=SSSS" for rank in (0, 1)]
        given = {
            "ranks": ["ranks", *traces], "look": ["look", traces[0]], "diff": ["diff", *traces],
            "check": ["check", tmp_path / "h.toml", traces[0]], "over-time": ["look", "--over-time", *traces],
        }[verb]  # fmt: skip
        gone = secret.replace(url.split(":")[2].strip("/"), "1")
        formats = ("terminal", "json", "markdown", "html", "github")
        asked = [[*given, "--format", one] for one in formats]
        for arguments in [*asked, ["ranks", gone], ["look", "--over-time", gone], ["look", f"{gone}x.json"]]:
            with pytest.raises(SystemExit):
                main(list(map(str, arguments)))
    printed = "".join(capsys.readouterr())
    assert "127.0.0.1" in printed
    assert "secret" not in printed
    assert "SSSS" not in printed


@pytest.mark.parametrize("size", ["8GB", "1 GiB"])
def test_python_takes_sizes_as_people_write_them(size, job):
    assert len(tracehunch.ranks(job, max_memory=size).rows) == 2
    with pytest.raises(TracehunchError, match="no size"):
        tracehunch.ranks(job, max_memory="much")
