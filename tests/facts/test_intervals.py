import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.facts.intervals import Cover, union_by_group

SPANS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 15)), min_size=1, max_size=25
)


def columns(spans):
    group, start, length = (np.array(column, dtype=np.int64) for column in zip(*spans, strict=True))
    return group, start, start + length


@given(SPANS)
def test_union_is_the_number_of_units_covered(spans):
    group, start, end = columns(spans)
    found = dict(
        zip(
            *(part.tolist() for part in union_by_group(group, start, end, np.arange(len(spans)))), strict=True
        )
    )
    covered = {g: set() for g, _, _ in spans}
    for g, first, length in spans:
        covered[g].update(range(first, first + length))
    assert found == {g: len(units) for g, units in covered.items()}


@given(SPANS)
def test_groups_that_lie_years_apart_do_not_mix(spans):
    unit = 2**55  # ns: more than a year, so that all groups one after the other exceed 64 bits
    group, start, end = columns(spans)
    keys, lengths = union_by_group(group, start * unit, end * unit, np.arange(len(spans)))
    short_keys, short = union_by_group(group, start, end, np.arange(len(spans)))
    assert np.array_equal(keys, short_keys)
    assert np.array_equal(lengths, short * unit)


@given(
    SPANS, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 24)), min_size=1, max_size=30, unique=True)
)
def test_an_item_may_be_in_several_groups(spans, members):
    _, start, end = columns(spans)
    pairs = [(g, i % len(spans)) for g, i in members]
    group, item = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
    found = dict(zip(*(part.tolist() for part in union_by_group(group, start, end, item)), strict=True))
    for g in {g for g, _ in pairs}:
        units = {unit for h, i in pairs if h == g for unit in range(start[i], end[i])}
        assert found[g] == len(units)


@given(SPANS, st.lists(st.integers(-2, 60), min_size=1, max_size=10))
def test_cover_counts_units_before_a_moment(spans, moments):
    _, start, end = columns(spans)
    units = {
        unit for first, last in zip(start.tolist(), end.tolist(), strict=True) for unit in range(first, last)
    }
    found = Cover(start, end).until(np.array(moments, dtype=np.int64))
    assert found.tolist() == [sum(unit < moment for unit in units) for moment in moments]


def test_nothing_covers_nothing():
    none = np.zeros(0, dtype=np.int64)
    assert Cover(none, none).until(np.array([5])).tolist() == [0]
    assert union_by_group(none, none, none, none)[0].size == 0
