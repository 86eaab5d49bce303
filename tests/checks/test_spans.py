"""Spans on the time axis, against marks on a line of whole numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.checks._idle_credit import accounted, running_maximum
from tracehunch.checks._spans import Spans, intersect

PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


def spans(pairs):
    start = np.array([a for a, _ in pairs], dtype=np.int64)
    length = np.array([b for _, b in pairs], dtype=np.int64)
    return Spans.of(start, start + length, np.arange(len(pairs)))


def marks(pairs):
    return {second for a, b in pairs for second in range(a, a + b)}


def seconds(found):
    return [
        s for a, b in zip(found.start_ns.tolist(), found.end_ns.tolist(), strict=True) for s in range(a, b)
    ]


@given(PAIRS)
def test_joined_spans_do_not_overlap_and_cover_the_same(pairs):
    assert seconds(spans(pairs)) == sorted(marks(pairs))


@given(PAIRS, PAIRS)
def test_what_lies_outside_others(mine, others):
    assert seconds(spans(mine).outside(spans(others))) == sorted(marks(mine) - marks(others))


@given(PAIRS, PAIRS)
def test_parts_of_any_stretches_that_lie_in_spans(stretches, others):
    start = np.array([a for a, _ in stretches], dtype=np.int64)
    end = start + np.array([b for _, b in stretches], dtype=np.int64)
    of, _, begin, stop = intersect(start, end, spans(others))
    for number, (a, b) in enumerate(stretches):
        mine = of == number
        found = Spans(begin[mine], stop[mine], of[mine])
        assert seconds(found) == sorted(marks([(a, b)]) & marks(others))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50)), min_size=1, max_size=20), st.booleans())
def test_a_running_maximum_starts_anew_in_each_group(pairs, far_apart):
    group = np.unique(np.sort([g for g, _ in pairs]), return_inverse=True)[1].astype(np.int64)
    values = np.array([v for _, v in pairs], dtype=np.int64) * (2**55 if far_apart else 1)
    expected = [
        values[group == group[i]][: int((group[: i + 1] == group[i]).sum())].max() for i in range(group.size)
    ]
    assert running_maximum(group, values).tolist() == expected


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), max_size=20))
def test_lost_time_accounts_for_gaps_one_after_the_other(rows):
    lost = np.cumsum([a for a, _, _ in rows]).astype(np.int64)
    length = np.array([b for _, b, _ in rows], dtype=np.int64)
    begins = np.array([i == 0 or c for i, (_, _, c) in enumerate(rows)], dtype=bool)
    since, expected, earlier = 0, [], 0
    for i in range(len(rows)):
        if begins[i]:
            since, earlier = (0 if i == 0 else int(lost[i - 1])), 0
        grown = min(int(lost[i]) - since, earlier + int(length[i]))
        expected.append(grown - earlier)
        earlier = grown
    base = np.maximum.accumulate(np.where(begins, np.r_[0, lost[:-1]] if len(rows) else lost, 0))
    assert accounted(lost - base, length, np.cumsum(begins)).tolist() == expected
