import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.tree import nesting
from tracehunch.tree.nesting import NONE, nearest, nest

SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 20)), max_size=40)


def columns(spans):
    group, start, length = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    return group, start, start + length


def by_definition(found, group, start, end, tolerance):
    """For each span in order: the last earlier one of its group that holds it."""
    ordered = found.order.tolist()
    parents = []
    for i, row in enumerate(ordered):
        holding = [
            j
            for j in range(i)
            if group[ordered[j]] == group[row]
            and end[ordered[j]] > start[row]
            and end[ordered[j]] + tolerance >= end[row]
        ]
        parents.append(max(holding, default=NONE))
    return parents


@given(SPANS.filter(bool), st.integers(0, 3))
def test_parent_is_the_last_earlier_span_that_holds(spans, tolerance):
    group, start, end = columns(spans)
    found = nest(group, start, end, np.zeros(len(spans)), tolerance_ns=tolerance)
    assert found.parent.tolist() == by_definition(found, group, start, end, tolerance)


@given(SPANS.filter(bool))
def test_crossing_is_told_of_spans_that_cross_an_earlier_one(spans):
    """Not of all: what lies inside a span that crosses is not told of again."""
    group, start, end = columns(spans)
    found = nest(group, start, end, np.zeros(len(spans)))
    o = found.order
    crossing = [
        any(group[o[j]] == group[o[i]] and start[o[i]] < end[o[j]] < end[o[i]] for j in range(i))
        for i in range(o.size)
    ]
    assert all(told <= true for told, true in zip(found.crosses.tolist(), crossing, strict=True))
    assert found.crosses.any() == any(crossing)


@given(SPANS.filter(bool))
def test_walking_finds_the_same_as_jumping(spans):
    group, start, end = columns(spans)
    expected = nest(group, start, end, np.zeros(len(spans)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nesting, "_ROUNDS", 1)
        walked = nest(group, start, end, np.zeros(len(spans)))
    assert walked.parent.tolist() == expected.parent.tolist()
    assert walked.crosses.tolist() == expected.crosses.tolist()


@given(SPANS.filter(bool), st.data())
def test_nearest_is_the_first_wanted_on_the_way_up(spans, data):
    group, start, end = columns(spans)
    parent = nest(group, start, end, np.zeros(len(spans))).parent
    wanted = np.array(data.draw(st.lists(st.booleans(), min_size=len(spans), max_size=len(spans))))
    found = nearest(parent, wanted)
    for i in range(parent.size):
        at = i
        while at != NONE and not wanted[at]:
            at = parent[at]
        assert found[i] == at


def test_rank_decides_between_equal_spans():
    found = nest([0, 0], np.array([1, 1]), np.array([5, 5]), [1, 0])
    assert found.order.tolist() == [1, 0]
    assert found.parent.tolist() == [NONE, 0]


def test_deep_stacks_and_many_siblings_take_no_quadratic_time():
    n = 100_000
    deep = np.arange(n) * 10
    after = n * 20 + np.arange(n) * 5
    start = np.r_[0, deep + 1, after]
    end = np.r_[n * 100, 2 * n * 10 - deep, after + 4]
    began = time.thread_time()
    found = nest(np.zeros(start.size), start, end, np.zeros(start.size))
    assert time.thread_time() - began < 20  # with one more sibling or level at a time it would be minutes
    assert (found.parent[n + 1 :] == 0).all()
    assert found.parent[1 : n + 1].tolist() == list(range(n))
