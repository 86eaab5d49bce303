import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.tree.timeline import Timeline, expand

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=30)
SPANS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 10)), min_size=1, max_size=10
)


@given(ROWS, SPANS)
def test_slices_hold_what_starts_in_each_span(rows, spans):
    group, start = (
        np.array([r[0] for r in rows], dtype=np.int64),
        np.array([r[1] for r in rows], dtype=np.int64),
    )
    timeline = Timeline(np.arange(len(rows)), group, start)
    wanted = np.array(spans, dtype=np.int64)
    first, last = timeline.slices(wanted[:, 0], wanted[:, 1], wanted[:, 1] + wanted[:, 2])
    for (of, begin, length), low, high in zip(spans, first.tolist(), last.tolist(), strict=True):
        inside = {i for i, (g, s) in enumerate(rows) if g == of and begin <= s < begin + length}
        assert set(timeline.rows[low:high].tolist()) == inside


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=10))
def test_expand_lists_every_position_of_every_slice(slices):
    first = np.array([a for a, _ in slices], dtype=np.int64)
    owner, position = expand(first, first + np.array([n for _, n in slices], dtype=np.int64))
    expected = [(i, a + k) for i, (a, n) in enumerate(slices) for k in range(n)]
    assert list(zip(owner.tolist(), position.tolist(), strict=True)) == expected
