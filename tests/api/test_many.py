"""``tracehunch.ranks``: a job from its files."""

import pytest

import tracehunch


def test_paths_of_every_kind(h200):
    folder = h200 / "ranks" / "tp"
    whole = tracehunch.ranks(folder)
    assert isinstance(whole, tracehunch.Ranks)
    assert [row.rank for row in whole.rows] == [0, 1]
    assert tracehunch.ranks([str(path) for path in sorted(folder.iterdir())], workers=1).rows == whole.rows


def test_what_could_not_be_read_is_in_the_answer_and_what_was_passed_over(h200, tmp_path):
    (tmp_path / "notes.txt").touch()
    job = tracehunch.ranks([h200 / "ranks" / "tp", tmp_path, tmp_path / "none.json"], workers=1)
    assert [(one.label, one.what) for one in job.unread] == [("none.json", "cannot be opened")]
    assert any(notice.code == "passed-over" for notice in job.notices)


def test_nothing_at_all_is_an_error(tmp_path):
    with pytest.raises(tracehunch.TracehunchError, match=r"neither.json: cannot be opened.*\(and 1 more"):
        tracehunch.ranks([tmp_path / "none.json", tmp_path / "neither.json"])
    with pytest.raises(tracehunch.TracehunchError, match="no trace in "):
        tracehunch.ranks(tmp_path)
    with pytest.raises(tracehunch.TracehunchError, match="no trace in nothing"):
        tracehunch.ranks([])
