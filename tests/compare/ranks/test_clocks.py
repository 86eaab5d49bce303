"""Offsets and drifts of clocks, from ranks whose clocks are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compare.ranks.summaries import EPOCH, collectives, job, rank, shifted

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.clocks import corrected
from tracehunch.compare.ranks.model import Clock


@settings(max_examples=10, deadline=None)
@given(offsets=st.lists(st.integers(-(10**11), 10**11), min_size=3, max_size=3), seed=st.integers(0, 99))
def test_offsets_are_found_within_their_error(offsets, seed):
    ranks = job(4, seed=seed)
    found = compare([ranks[0], *(shifted(one, by) for one, by in zip(ranks[1:], offsets, strict=True))])
    assert len(found.matched) == len(ranks[0].collectives)
    for clock, offset in zip(found.clocks, [0, *offsets], strict=True):
        assert abs(clock.offset_ns - offset) <= clock.error_ns + 1
    # Offsets below 20 us, either way, are none that can be told.
    assert all(one.skew_ns < 70_000 for one in found.matched)


def test_on_one_clock_there_is_no_offset():
    assert [one.offset_ns for one in compare(job(4)).clocks] == [0, 0, 0, 0]


def drifting(one, ppm):
    calls = one.collectives

    def warp(stamps):
        return stamps + np.rint((stamps - EPOCH) * ppm / 1e6).astype(np.int64)

    return replace(one, collectives=replace(calls, start_ns=warp(calls.start_ns), end_ns=warp(calls.end_ns)))


def test_a_drift_is_found_and_taken_off():
    ranks = job(2, 400)  # 4 s
    found = compare([ranks[0], drifting(ranks[1], 50.0)])
    assert found.clocks[1].drift_ppm == pytest.approx(50, abs=2)
    assert max(one.skew_ns for one in found.matched) < 20_000
    assert [one.code for one in found.notices] == ["clock-drift"]


def test_no_drift_is_seen_in_a_recording_that_is_too_short_for_it():
    assert compare([job(2)[0], drifting(job(2)[1], 20.0)]).clocks[1].drift_ppm == 0


def test_ranks_without_a_common_group_are_compared_through_others():
    ends = EPOCH + np.cumsum(np.random.default_rng(0).integers(800_000, 1_200_000, 20))
    pairs = {0: (0, 1), 1: (0, 1), 2: (1, 2), 3: (2, 3)}
    first = rank(0, collectives(ends, ranks=pairs[0]), 3)
    both = [collectives(ends + 500_000_000 + shift, ranks=group, group=str(group)) for shift, group in
            ((0, (0, 1)), (50_000, (1, 2)))]  # fmt: skip
    second = rank(1, joined(*both), 3)
    third = rank(2, collectives(ends + 50_000 + 900_000_000, ranks=(1, 2), group="(1, 2)"), 3)
    found = compare(
        [replace(first, collectives=collectives(ends, ranks=(0, 1), group="(0, 1)")), second, third]
    )
    assert [one.offset_ns for one in found.clocks] == pytest.approx([0, 500_000_000, 900_000_000], abs=1_000)
    assert found.clocks[2].error_ns > found.clocks[1].error_ns


def joined(first, second):
    """The calls of two groups of one rank in one table."""
    columns = ("kind", "dtype", "op", "number", "sequence", "in_bytes", "out_bytes", "launch_ns", "start_ns",
               "end_ns", "exposed_ns", "device", "step", "event")  # fmt: skip
    made = {name: np.concatenate([getattr(first, name), getattr(second, name)]) for name in columns}
    group = np.repeat([0, 1], [len(first), len(second)]).astype(np.int32)
    return replace(first, **made, group=group, groups=(*first.groups, *second.groups))


def test_broadcasts_say_nothing_about_clocks():
    ends = EPOCH + np.arange(10) * 1_000_000
    ranks = [
        rank(i, collectives(ends + i * 90_000, ranks=(0, 1), kind="broadcast", step=np.arange(10) // 5))
        for i in range(2)
    ]
    found = compare(ranks)
    assert [one.collectives for one in found.clocks] == [0, 0]
    assert len(found.matched) == 10


def test_stamps_are_corrected_at_their_own_moment():
    clock = Clock(1, 1_000, 5, 9, 100.0, 10_000_000)
    stamps = np.array([10_000_000, 20_000_000])
    assert corrected(stamps, np.array([0, 0]), [clock]).tolist() == [9_999_000, 19_998_000]
