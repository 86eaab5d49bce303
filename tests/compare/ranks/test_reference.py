"""Ranks that recorded other steps than the rank with the most: what they share is matched all the same."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from tests.compare.ranks.summaries import collectives, job, rank, shifted

from tracehunch.compare.ranks import compare

MS = 1_000_000


def recorded_only(one, first, last):
    """The same rank, had it recorded only the steps from ``first`` to ``last``."""
    calls = one.collectives
    kept = np.flatnonzero((calls.step >= first) & (calls.step <= last))
    columns = {
        column.name: value[kept]
        for column in fields(calls)
        if isinstance(value := getattr(calls, column.name), np.ndarray)
    }
    taken = replace(calls, **columns | {"number": np.arange(kept.size)})
    steps = tuple(step for step in one.steps if first <= step.number <= last)
    return replace(
        one, collectives=taken, steps=steps, start_ns=int(taken.start_ns[0]), end_ns=int(taken.end_ns[-1])
    )


def slow_from(step, number=12, ranks=4, extra=2 * MS):
    """A job whose last rank's GPU needs ``extra`` more from a step on."""
    late = np.zeros((ranks, number), dtype=np.int64)
    late[-1, step:] = extra
    return job(ranks, number, late_ns=late, busy=2 * MS + late)


@pytest.mark.parametrize("ahead_ns", [0, 50 * MS, -50 * MS])
@pytest.mark.parametrize(
    ("parts", "shared"),
    [
        ([(0, 6), (5, 11), (0, 6), (5, 11)], range(12)),  # two begin and stop later
        ([(0, 7), (3, 9), (3, 9), (6, 11)], range(3, 10)),  # each shares some steps with the next
        ([(4, 11), (0, 5), (0, 5), (4, 11)], range(12)),
        ([(0, 6), (0, 6), (0, 6), (5, 11)], range(7)),  # nobody shares the end
    ],
)
def test_calls_beyond_the_longest_recording_are_matched(parts, shared, ahead_ns):
    ranks = [recorded_only(one, *part) for one, part in zip(slow_from(0), parts, strict=True)]
    ranks[1] = shifted(ranks[1], ahead_ns)
    found = compare(ranks)
    assert {one.step for one in found.matched} == set(shared)
    held = {step: sum(first <= step <= last for first, last in parts) for step in range(12)}
    assert all(len(one.rows) == held[one.step] for one in found.matched)
    assert found.unmatched == 4 * (12 - len(shared))


def test_what_a_straggler_costs_is_the_mean_of_the_steps_in_which_others_were_recorded():
    parts = [(0, 6), (5, 11), (0, 6), (5, 11)]
    whole = slow_from(4)
    ranks = [recorded_only(one, *part) for one, part in zip(whole, parts, strict=True)]
    (found,) = [one for one in compare(ranks).findings if one.id == "straggler"]
    (expected,) = [one for one in compare(whole).findings if one.id == "straggler"]
    assert (found.subject, found.severity) == ("rank 3", "warning")
    assert found.time_at_stake_us == pytest.approx(expected.time_at_stake_us, rel=0.1)
    assert "from step 5 on" in found.summary


def test_ranks_recorded_at_two_times_are_matched_among_those_of_each():
    parts = [(0, 4), (0, 4), (6, 11), (6, 11)]
    found = compare([recorded_only(one, *part) for one, part in zip(slow_from(4), parts, strict=True)])
    assert {tuple(sorted(one.rows)) for one in found.matched} == {(0, 1), (2, 3)}
    assert (len(found.matched), found.unmatched) == (44, 0)
    (apart,) = [one for one in found.notices if one.code == "recorded-apart"]
    assert apart.message.startswith("ranks 0-1 were recorded at other times")
    (late,) = [one for one in found.findings if one.id == "straggler"]
    assert late.subject == "rank 3"


def test_one_collective_is_all_that_ranks_need_to_share():
    ends = [np.array([1_790_000_000_000_000_000 + i]) for i in (0, 300, -250)]
    found = compare([rank(i, collectives(e, ranks=(0, 1, 2)), 3) for i, e in enumerate(ends)])
    assert (len(found.matched), found.unmatched) == (1, 0)
    assert "recorded-apart" not in [one.code for one in found.notices]
