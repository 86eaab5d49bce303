import gzip
import json

import pytest

from tracehunch.capture.export import GIGANTIC_BYTES, UNFINISHED, check_place, export_whole, gigantic
from tracehunch.errors import CaptureError

ROWS = '"pid": 1, "tid": 1,\n    "ts": {ts}, "dur": 2'


class Profiler:
    """Writes a text, as Kineto does: without a word if it fails."""

    def __init__(self, text):
        self.text = text

    def export_chrome_trace(self, path):
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123  # as the profiler gets it
            file.write(self.text)


def trace(*names_and_times):
    events = [
        f'{{"ph": "X", "cat": "user_annotation", "name": "{name}", {ROWS.format(ts=ts)}}}'
        for name, ts in names_and_times
    ]
    return '{ "schemaVersion": 1, "traceEvents": [' + ",\n".join(events) + "]}"


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_the_file_is_what_the_profiler_wrote(tmp_path, name):
    text = trace(("a", 1.5))
    assert export_whole(Profiler(text), tmp_path / "new" / name) == len(text)
    data = (tmp_path / "new" / name).read_bytes()
    assert (gzip.decompress(data) if name.endswith("gz") else data).decode() == text


@pytest.mark.parametrize("text", ["", '{"traceEvents": [{"ph": "X"'])
def test_a_part_of_a_trace_is_none_and_what_was_there_stays(tmp_path, text):
    path = tmp_path / "t.json"
    path.write_text("before")
    with pytest.raises(CaptureError, match="only a part"):
        export_whole(Profiler(text), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_annotations_that_had_not_ended_are_told_apart(tmp_path):
    events = [
        ("Step#1", 1.0),
        ("label", 1.5),
        ("other", 2.0),
        ("Step#2", 10.25),
        ("label", 10.5),
        ("other", 11.0),
    ]
    export_whole(Profiler(trace(*events)), tmp_path / "t.json", ("Step#2", "label"))
    rows = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [(row["name"], row["ts"]) for row in rows] == events
    assert [row["name"] for row in rows if row["cat"] == UNFINISHED] == ["Step#2", "label"]
    assert [row["ts"] for row in rows if row["cat"] == UNFINISHED] == [10.25, 10.5]


def test_keys_are_added_at_the_top(tmp_path):
    export_whole(Profiler(trace(("a", 1))), tmp_path / "t.json", keys={"one": '{"x": "ü"}', "two": "2"})
    whole = json.loads((tmp_path / "t.json").read_text())
    assert (whole["one"], whole["two"], whole["schemaVersion"]) == ({"x": "ü"}, 2, 1)


def test_a_place_is_checked_before_there_is_a_trace(tmp_path):
    (tmp_path / "file").write_text("")
    check_place(tmp_path / "new" / "t.json.gz")
    assert (tmp_path / "new").is_dir()
    for path, said in (
        (tmp_path / "t.trace", "ends neither in .json nor in .json.gz"),
        (tmp_path / "file" / "t.json", "it is no folder; choose another folder"),
        (tmp_path, "ends neither"),
    ):
        with pytest.raises(CaptureError, match=said):
            check_place(path)


def test_a_gigantic_trace_is_noted_and_no_other():
    assert gigantic(GIGANTIC_BYTES - 1, 3) == ""
    assert gigantic(GIGANTIC_BYTES, 3).startswith("the trace is 512 MiB of JSON")
    assert "fewer steps" in gigantic(GIGANTIC_BYTES, 3)
    assert "a smaller part" in gigantic(GIGANTIC_BYTES, 1)
