"""Which calls of two ranks are the same: never a wrong pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracehunch.compare.ranks.shifts import Calls, pair

ABSENT = -1


def calls(which, ends, signature, step=None, sequence=None):
    which = np.asarray(which, dtype=int)
    none = np.full(which.size, ABSENT)
    return Calls(
        number=np.arange(which.size),
        sequence=none if sequence is None else np.asarray(sequence)[which],
        signature=np.asarray(signature)[which],
        step=none if step is None else np.asarray(step)[which],
        end_ns=np.asarray(ends)[which],
        together=np.ones(which.size, dtype=bool),
    )


def moments(size, seed, jitter=150_000):
    noise = np.random.default_rng(seed)
    return np.cumsum(noise.integers(1_000_000 - jitter, 1_000_000 + jitter, size))


def truth(pairs, own, other):
    """Pairs as numbers of the calls that were made."""
    return list(
        zip(np.asarray(own)[pairs.own].tolist(), np.asarray(other)[pairs.other].tolist(), strict=True)
    )


@example(seed=4713, offset=0, ahead=1, behind=0, period=1, with_steps=False, lost=8)
@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    offset=st.integers(-(10**12), 10**12),
    ahead=st.integers(0, 6),
    behind=st.integers(0, 6),
    period=st.sampled_from([1, 3, 5]),
    with_steps=st.booleans(),
    lost=st.integers(-1, 20),
)
def test_no_pair_is_wrong_and_most_are_found(*, seed, offset, ahead, behind, period, with_steps, lost):
    size = 30
    ends = moments(size, seed)
    signature = np.arange(size) % period
    step = np.arange(size) // 5 if with_steps else None
    noise = np.random.default_rng(seed + 1)
    own = [i for i in range(ahead, size) if i != lost + 7]
    other = list(range(size - behind))
    first = calls(own, ends + offset + noise.integers(-5_000, 5_000, size), signature, step)
    second = calls(other, ends, signature, step)
    found = truth(pair(first, second), own, other)
    assert all(one == two for one, two in found)
    if lost < 0 or with_steps:
        shared = len(set(own) & set(other))
        assert len(found) >= shared - 1


def test_sequence_numbers_settle_it():
    ends = moments(10, 0)
    first = calls(range(2, 10), ends + 7, np.zeros(10, int), sequence=np.arange(10) + 40)
    second = calls(range(8), ends, np.zeros(10, int), sequence=np.arange(10) + 40)
    assert truth(pair(first, second), range(2, 10), range(8)) == [(i, i) for i in range(2, 8)]


def test_equal_numbers_of_unlike_calls_are_no_pair():
    ends = moments(6, 0)
    first = calls(range(6), ends, [0, 0, 1, 0, 0, 0], sequence=np.arange(6))
    second = calls(range(6), ends, [0, 0, 0, 0, 0, 0], sequence=np.arange(6))
    assert 2 not in pair(first, second).own.tolist()


def test_what_is_ambiguous_is_not_paired():
    ends = np.arange(20) * 1_000_000  # as regular as a clock, and an unknown offset
    first = calls(range(20), ends + 2_000_500_000, np.zeros(20, int))
    second = calls(range(20), ends, np.zeros(20, int))
    assert not len(pair(first, second))


def test_on_a_common_clock_the_nearest_is_the_same_call():
    ends = np.arange(20) * 1_000_000
    first = calls(range(3, 20), ends + 3_000, np.zeros(20, int))
    second = calls(range(20), ends, np.zeros(20, int))
    assert truth(pair(first, second), range(3, 20), range(20)) == [(i, i) for i in range(3, 20)]


@pytest.mark.parametrize("own", [[], [0]])
def test_few_calls(own):
    ends = moments(3, 0)
    first, second = calls(own, ends, [0, 0, 0]), calls([0], ends, [0, 0, 0])
    assert len(pair(first, second)) == len(own)


def test_steps_that_are_numbered_otherwise_give_way_to_the_ends():
    ends = moments(40, 3)
    step = np.arange(40) // 5
    first = calls(range(40), ends, np.zeros(40, int), step + 1)  # this rank counts its steps from 1
    second = calls(range(40), ends + 5_000_000, np.zeros(40, int), step)
    assert truth(pair(first, second), range(40), range(40)) == [(i, i) for i in range(40)]
