"""Overlaps against a count that cuts time at every edge, and against small made-up intervals."""

from itertools import pairwise

import numpy as np
import pytest

from tracehunch.checks._overlap import alone_ns, others_beside, overlapped_ns, stream_column, union_ns
from tracehunch.trace.model import Cat
from tracehunch.tree.names import names_that


def between_edges(trace, rows, others):
    """Nanoseconds in which some of the rows run and none of the others."""
    end = trace.end_ns()
    edges = np.unique(np.concatenate([trace.start_ns[rows], end[rows], trace.start_ns[others], end[others]]))

    def running(chosen, low, high):
        return ((trace.start_ns[chosen] <= low) & (end[chosen] >= high)).any()

    return sum(
        high - low
        for low, high in pairwise(edges)
        if running(rows, low, high) and not running(others, low, high)
    )


@pytest.mark.parametrize("name", ["ranks/ddp/rank1", "ranks/tp/rank0", "faults/two_streams"])
def test_time_alone_is_what_the_edges_say(facts_of, name):
    trace = facts_of(name).tree.trace
    kernels = trace.rows(Cat.KERNEL)
    chosen = names_that(trace, lambda text: "nccl" in text or "clamp" in text)[trace.name[kernels]]
    rows, others = kernels[chosen], kernels[~chosen]
    assert rows.size
    assert alone_ns(trace, rows, others).sum() == between_edges(trace, rows, others)


def test_time_of_several_counts_once(facts_of):
    trace = facts_of("faults/two_streams").tree.trace
    rows = trace.gpu.row.astype(np.int64)
    none = rows[:0]
    total = alone_ns(trace, rows, none).sum()
    assert total == union_ns(trace, rows, np.zeros(rows.size), 1)[0] == between_edges(trace, rows, none)
    assert total < trace.dur_ns[rows].sum()


def test_two_streams_overlap_and_one_does_not(facts_of):
    two, one = (facts_of(f"faults/{name}").tree.trace for name in ("two_streams", "fp32_gemm"))
    assert overlapped_ns(two, two.gpu.row).any()
    assert not overlapped_ns(one, one.gpu.row).any()
    assert np.unique(stream_column(two)[two.gpu.row]).size == 2


@pytest.mark.parametrize("name", ["ranks/ddp/rank1", "ranks/tp/rank0", "faults/two_streams"])
def test_only_what_runs_beside_takes_time_away(facts_of, name):
    facts = facts_of(name)
    trace = facts.tree.trace
    everything = trace.gpu.row.astype(np.int64)
    for rows in (everything[::5], everything[:9], trace.rows(Cat.MEMCPY), everything[:0]):
        near, others = others_beside(facts, rows), np.setdiff1d(everything, rows)
        assert np.isin(near, others).all()
        assert np.array_equal(alone_ns(trace, rows, near), alone_ns(trace, rows, others))
