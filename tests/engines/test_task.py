"""What one file gives, and how what went wrong with it is said."""

import pytest

from tracehunch.compare.ranks.model import RankSummary, Unread
from tracehunch.engines import task
from tracehunch.trace.discover import Source


def test_a_trace_gives_its_summary_under_the_name_by_which_it_was_found(h200):
    path = h200 / "ranks" / "tp" / "rank1.json.gz"
    one = task.examined(Source(str(path), "job/rank1.json.gz", 123))
    assert isinstance(one, RankSummary)
    assert (one.source, one.label, one.file_bytes, one.rank) == ("job/rank1.json.gz", "rank1.json.gz", 123, 1)


def test_what_cannot_be_read_is_said_without_its_name(tmp_path):
    path = tmp_path / "rank3.json"
    path.touch()
    one = task.examined(Source(str(path), "job/rank3.json", 0))
    assert one == Unread(
        "job/rank3.json",
        "rank3.json",
        "the file is empty (0 bytes)",
        "the disk was full, or the job died before the export",
        0,
    )
    gone = task.examined(Source(str(tmp_path / "none.json"), "none.json"))
    assert gone.what == "cannot be opened"


def test_a_defect_costs_one_file_and_is_named(monkeypatch):
    def broken(_source):
        raise KeyError("x")

    monkeypatch.setattr(task, "examine", broken)
    one = task.examined(Source("/a/b.json", "b.json"))
    assert one.what == "could not be examined"
    assert one.why.startswith("KeyError: 'x' (test_task.py:")


def test_memory_that_runs_out_is_for_the_engine(monkeypatch):
    def hungry(_source):
        raise MemoryError

    monkeypatch.setattr(task, "examine", hungry)
    with pytest.raises(MemoryError):
        task.examined(Source("/a/b.json", "b.json"))


def test_labels():
    assert task.label_of("s3://bucket/job/rank1.json") == "rank1.json"
    assert task.label_of("folder/") == "folder"
    assert task.label_of("/") == "/"
