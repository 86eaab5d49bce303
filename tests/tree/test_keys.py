"""Keys against numpy's own, slower ways, and against plain Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tracehunch.tree.keys import (
    Lookup,
    distinct,
    groups_of,
    is_among,
    largest,
    numbered,
    packed,
    sorted_within,
    stable_order,
    sums_by,
)

SMALL = st.integers(-3, 40)
WIDE = st.integers(-(2**61), 2**61)
COLUMN = st.integers(0, 60).flatmap(
    lambda n: st.one_of(arrays(np.int64, n, elements=s) for s in (SMALL, WIDE))
)


@st.composite
def tables(draw):
    n, width = draw(st.integers(0, 40)), draw(st.integers(1, 4))
    return [draw(arrays(np.int64, n, elements=draw(st.sampled_from([SMALL, WIDE])))) for _ in range(width)]


@given(tables())
@settings(max_examples=200)
def test_packed_is_alike_and_ordered_as_the_rows_are(columns):
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    key = packed(*columns).tolist()
    assert [sorted(set(rows)).index(row) for row in rows] == [sorted(set(key)).index(one) for one in key]


@given(COLUMN)
@settings(max_examples=200)
def test_distinct_keys_are_those_of_numpy(column):
    keys, first, number = np.unique(column, return_index=True, return_inverse=True)
    found = numbered(column)
    assert np.array_equal(found.keys, keys)
    assert np.array_equal(found.first, first)
    assert np.array_equal(found.number, number.reshape(-1))
    assert np.array_equal(distinct(column), keys)


@given(COLUMN)
@settings(max_examples=200)
def test_entries_that_are_alike_stay_in_order(column):
    assert np.array_equal(stable_order(column), np.argsort(column, kind="stable"))
    groups = groups_of(column)
    assert [column[group[0]] for group in groups] == np.unique(column).tolist()
    for group in groups:
        assert np.array_equal(group, np.flatnonzero(column == column[group[0]]))


@given(COLUMN, st.integers(1, 70))
@settings(max_examples=100)
def test_the_largest_are_the_first_of_those_that_are_alike(column, most):
    assert np.array_equal(largest(column / 8, most), np.argsort(-(column / 8), kind="stable")[:most])


@given(COLUMN, st.randoms())
@settings(max_examples=100)
def test_values_are_sorted_within_their_group(column, random):
    group = np.sort(np.array([random.randrange(5) for _ in column], dtype=np.int64))
    assert np.array_equal(sorted_within(group, column), column[np.lexsort((column, group))])
    assert np.array_equal(sorted_within(group, column / 8), (column / 8)[np.lexsort((column, group))])


@pytest.mark.parametrize("spread", [1, 10**6])
def test_sums_go_to_their_keys(spread):
    keys, weights = np.array([3, 1, 3, 7, 1]) * spread, np.array([1, 2, 4, 8, 16])
    found, sums = sums_by(keys, weights)
    assert dict(zip((found // spread).tolist(), sums.tolist(), strict=True)) == {1: 18.0, 3: 5.0, 7: 8.0}


@given(COLUMN, st.lists(SMALL, max_size=5))
def test_a_lookup_finds_all_that_have_a_key(column, wanted):
    assert np.array_equal(Lookup.of(column).having(wanted), np.flatnonzero(np.isin(column, wanted)))


@given(COLUMN, st.lists(SMALL, max_size=5))
def test_membership_is_that_of_numpy(column, wanted):
    found = is_among(column, np.array(sorted(wanted), dtype=np.int64))
    assert np.array_equal(found, np.isin(column, wanted))
