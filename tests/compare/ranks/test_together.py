"""One job, whatever the order its ranks come in."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compare.ranks.summaries import EPOCH, collectives, job, rank

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.model import Group, Unread
from tracehunch.trace.model import Notice

UNREAD = Unread("x.json", "x.json", "cannot read x.json", "it is no trace")


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(6)))
def test_the_order_makes_no_difference(order):
    late = np.zeros((5, 8), dtype=np.int64)
    late[3] = 900_000
    files = [*job(5, late_ns=late, busy=2_000_000 + late), UNREAD]
    assert pickle.dumps(compare([files[i] for i in order])) == pickle.dumps(compare(files))


def test_what_cannot_be_read_is_kept_and_the_rest_goes_on():
    found = compare([UNREAD, *job(2)])
    assert found.unread == (UNREAD,)
    assert [row.rank for row in found.rows] == [0, 1]


@pytest.mark.parametrize("files", [[], [UNREAD]])
def test_no_rank_at_all(files):
    found = compare(files)
    assert (found.rows, found.matched, found.findings, found.notices) == ((), (), (), ())


def test_one_rank_alone():
    found = compare(job(2)[:1])
    assert (found.missing, found.matched, found.odd, found.findings) == ((1,), (), (), ())


def test_damage_is_carried_with_the_rank():
    ranks = job(3)
    broken = (Notice("truncated", "the file ends in the middle", lossy=True), Notice("fine", "nothing"))
    found = compare([ranks[0], replace(ranks[1], notices=broken), ranks[2]])
    assert found.notices == (
        Notice("truncated", "rank 1 (rank1.json): the file ends in the middle", lossy=True),
    )


def test_two_recorded_jobs_in_one_folder(examined):
    names = [f"h200/ranks/{job}/rank{i}" for job in ("ddp", "tp") for i in (0, 1)]
    files = [replace(examined(name), source=name) for name in names]
    found = compare(files)
    assert [row.sources for row in found.rows] == [(names[2],), (names[3],)]  # of equal ones the newest
    assert len(found.other_jobs) == 1
    assert "mixed-jobs" in [one.code for one in found.notices]


ENDS = EPOCH + np.cumsum(np.random.default_rng(0).integers(800_000, 1_200_000, 20))
STEP = np.arange(20) // 5


def groups(*per_rank, world=4):
    """Ranks with all-reduces in a group each, (name, ranks, size)."""
    made = []
    for number, (name, ranks, size) in enumerate(per_rank):
        calls = collectives(ENDS + 37_000_000 * (number // 2), ranks=(), step=STEP)
        made.append(rank(number, replace(calls, groups=(Group(name, "", ranks, size),)), world))
    return compare(made)


def pairs(found):
    return sorted({tuple(one.rows) for one in found.matched})


def test_groups_of_one_name_on_two_nodes_are_two():
    found = groups(("tp", (0, 1), 2), ("tp", (0, 1), 2), ("tp", (2, 3), 2), ("tp", (2, 3), 2))
    assert pairs(found) == [(0, 1), (2, 3)]


def test_a_group_that_its_ranks_name_otherwise_is_one():
    found = groups(("tp_a", (0, 1), 2), ("tp_b", (0, 1), 2), ("tp_a", (2, 3), 2), ("tp_c", (2, 3), 2))
    assert pairs(found) == [(0, 1), (2, 3)]


def test_groups_that_nothing_tells_apart_are_not_matched():
    found = groups(*[("tp", (), 2)] * 4)
    assert (found.matched, found.unmatched) == ((), 80)


def test_a_group_without_a_list_of_ranks_goes_by_its_name():
    assert pairs(groups(("a", (), 2), ("a", (), 2), ("b", (), 2), ("b", (), 2))) == [(0, 1), (2, 3)]


def test_of_a_group_whose_ranks_are_missing_the_rest_is_matched():
    found = groups(*[("0", (0, 1, 2, 3), 4)] * 2)
    assert pairs(found) == [(0, 1)]
    assert found.missing == (2, 3)
