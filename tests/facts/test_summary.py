import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.facts.summary import summaries

VALUES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 100), st.booleans()), min_size=1, max_size=30)


@given(VALUES, st.booleans())
def test_median_low_and_high_of_each_group(values, whole):
    group = np.array(sorted(g for g, _, _ in values), dtype=np.int64)
    value = np.array([v for _, v, _ in values], dtype=np.int64)
    known = np.array([k for _, _, k in values])
    found = summaries(group, value, known, whole=whole)
    median = statistics.median_low if whole else statistics.median
    for number, middle, low, high in zip(*(list(part) for part in found), strict=True):
        mine = value[(group == number) & known].tolist()
        assert (middle, low, high) == (median(mine), min(mine), max(mine))
    assert set(found[0].tolist()) == set(group[known].tolist())
