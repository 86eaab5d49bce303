"""A folder in place of a trace: the newest file in it that is one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tracehunch.errors import ReadError
from tracehunch.trace import read

NAIVE = Path(__file__).parents[1] / "data" / "h200" / "seeds" / "naive.json.gz"


def put(folder, name, text, age):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(text, Path):
        shutil.copy(text, path)
    else:
        path.write_text(text)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


NO_TRACES = {
    "stats.json": '{"loss": [1, 2]}',
    "metrics.json": '[{"step": 1, "loss": 2}]',
    "empty.json": "",
    "page.json": "<!doctype html>",
    "snapshot.json": json.dumps({"segments": [], "device_traces": []}),
    "execution.json": json.dumps({"schema": "1.0", "nodes": []}),
}


@pytest.mark.parametrize(("name", "text"), NO_TRACES.items())
def test_newer_files_that_are_no_trace_are_passed_over_and_named(name, text, tmp_path):
    put(tmp_path, "run.json.gz", NAIVE, age=100)
    put(tmp_path, name, text, age=0)
    trace = read(tmp_path)
    assert (trace.label, trace.n_events) == ("run.json.gz", 277)
    notice = next(one for one in trace.notices if one.code == "no-traces")
    assert name in notice.message
    assert not notice.lossy


def test_the_other_traces_are_listed_besides(tmp_path):
    put(tmp_path, "old.json.gz", NAIVE, age=200)
    put(tmp_path, "new.json.gz", NAIVE, age=100)
    put(tmp_path, "stats.json", "{}", age=0)
    codes = {notice.code: notice.message for notice in read(tmp_path).notices}
    assert "old.json.gz" in codes["other-traces"]
    assert "stats.json" not in codes["other-traces"]


def test_files_that_the_profiler_named_come_first_and_others_only_without_them(tmp_path):
    put(tmp_path, "x.pt.trace.json", "{}", age=0)
    put(tmp_path, "run.json.gz", NAIVE, age=100)
    assert read(tmp_path).label == "run.json.gz"


def test_a_folder_of_no_trace_is_an_error_that_says_what_is_there(tmp_path):
    put(tmp_path, "stats.json", "{}", age=0)
    with pytest.raises(ReadError, match=r"stats\.json: not a trace"):
        read(tmp_path)
    put(tmp_path, "more.json", "[1]", age=1)
    with pytest.raises(ReadError, match=r"none of 2 JSON files is one; the newest, stats\.json"):
        read(tmp_path)


def test_a_trace_that_lies_deeper_is_named_by_its_way_there(tmp_path):
    put(tmp_path, "logs/run.json.gz", NAIVE, age=0)
    assert read(tmp_path).label == str(Path("logs") / "run.json.gz")
