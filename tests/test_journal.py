"""The journal: whole lines, read back whatever else is in the file, and the running score."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehunch.errors import TracehunchError
from tracehunch.guess import Claim, Guess
from tracehunch.journal import RECENT, Entry, Score, append, entry_of, history, journal_path, standing
from tracehunch.verdict import CannotTell, Held, Surprise, Verdict

KERNELS = Claim("kernels", "==", 5, "attn_fwd", "user", unit="count")
COPIES = Claim("copies", "==", 0, "attn_fwd", "user", unit="count")
GUESS = Guess((KERNELS, COPIES))
VERDICT = Verdict(
    (Held(KERNELS, 5),),
    (Surprise(COPIES, 1, "error", (), 127.6, (3,)),),
    (CannotTell("dtype", "attn_fwd", "no shapes"),),
)


def entry(**outcomes):
    """An entry with key -> whether it held."""
    held = tuple(key for key, good in outcomes.items() if good)
    return Entry("2026-01-01T00:00:00+00:00", "s", {}, dict.fromkeys(outcomes, 1), Score(), "seal", held=held)


def test_an_entry_says_what_was_guessed_and_seen():
    made = entry_of(GUESS, VERDICT, "naive", datetime(2026, 8, 1, 12, tzinfo=UTC))
    assert made == Entry(
        "2026-08-01T12:00:00+00:00", "attn_fwd", {"kernels": "== 5", "copies": "== 0"},
        {"kernels": 5, "copies": 1}, Score(1, 1, 1), GUESS.seal, "naive", ("kernels",),
    )  # fmt: skip
    assert made.score.told == 2


def test_lines_are_plain_json_and_come_back(tmp_path):
    path = tmp_path / "deep" / "er" / "journal.jsonl"
    first, second = entry_of(GUESS, VERDICT, "naive"), entry(kernels=True)
    assert append(first, path) == path
    append(second, path)
    assert [json.loads(line)["scope"] for line in path.read_text().splitlines()] == ["attn_fwd", "s"]
    assert history(path) == [first, second]


def test_broken_lines_are_left_out_and_do_not_spoil_the_next(tmp_path):
    path = tmp_path / "journal.jsonl"
    append(entry(kernels=True), path)
    whole = path.read_bytes()
    path.write_bytes(b'not json\n{"time": 5}\n\xff\xfe\n\n[1]\n' + whole + whole[:30])
    append(entry(copies=False), path)
    assert history(path) == [entry(kernels=True), entry(copies=False)]


def test_no_file_is_no_history(tmp_path):
    assert history(tmp_path / "none.jsonl") == []


def test_a_journal_that_cannot_be_written_or_read_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TracehunchError, match=r"cannot write the journal .*TRACEHUNCH_JOURNAL"):
        append(entry(kernels=True), tmp_path / "file" / "journal.jsonl")
    with pytest.raises(TracehunchError, match="cannot read the journal"):
        history(tmp_path)


def test_writers_at_the_same_time_lose_no_line(tmp_path):
    path = tmp_path / "journal.jsonl"
    threads = [
        threading.Thread(target=lambda: [append(entry(kernels=True), path) for _ in range(25)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(history(path)) == 100


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TRACEHUNCH_JOURNAL": "/a/j.jsonl", "XDG_STATE_HOME": "/b"}, Path("/a/j.jsonl")),
        ({"XDG_STATE_HOME": "/b"}, Path("/b/tracehunch/journal.jsonl")),
        ({"XDG_STATE_HOME": "relative"}, Path.home() / ".local/state/tracehunch/journal.jsonl"),
        ({}, Path.home() / ".local/state/tracehunch/journal.jsonl"),
    ],
)
def test_where_the_journal_is(environment, expected):
    assert journal_path(environment) == expected


def test_the_standing_shows_guesses_getting_better():
    entries = [entry(kernels=False, copies=False)] * 10 + [entry(kernels=True, copies=True)] * 20
    now = standing(entries)
    assert (now.guesses, now.held, now.told, now.accuracy) == (30, 40, 60, pytest.approx(2 / 3))
    assert (now.recent, now.recent_told) == (1.0, RECENT)
    assert now.by_key == {"kernels": (20, 30), "copies": (20, 30)}
    assert standing([]).accuracy is None
    assert standing([]).recent is None


@settings(deadline=None)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(["kernels", "copies", "dtype"]), st.booleans(), max_size=3),
        max_size=30,
    )
)
def test_the_standing_counts_each_told_claim_once(outcomes):
    now = standing(entry(**one) for one in outcomes)
    assert now.told == sum(len(one) for one in outcomes) == sum(told for _, told in now.by_key.values())
    assert (
        now.held == sum(sum(one.values()) for one in outcomes) == sum(held for held, _ in now.by_key.values())
    )
