"""Bus bandwidth as nccl-tests define it."""

from __future__ import annotations

from statistics import median

import numpy as np
import pytest
from tests.compare.ranks.recorded import raw
from tests.compare.ranks.summaries import EPOCH, collectives, rank

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.bandwidth import factor


def made(kind, bytes_, ranks=4):
    ends = EPOCH + np.cumsum(np.random.default_rng(0).integers(800_000, 1_200_000, 12))
    group = tuple(range(ranks))
    late = [[-300_000, 0][i == ranks - 1] for i in range(ranks)]
    step = np.arange(12) // 3
    calls = [collectives(ends, ranks=group, kind=kind, bytes_=bytes_, late=one, step=step) for one in late]
    return [rank(i, one, ranks) for i, one in enumerate(calls)]


@pytest.mark.parametrize(
    ("kind", "named", "times"),
    [
        ("allreduce", "allreduce", 1.5),
        ("_allgather_base", "allgather", 0.75),
        ("reduce_scatter_tensor_coalesced", "reducescatter", 0.75),
        ("all_to_allv", "alltoall", 0.75),
    ],
)
def test_bytes_over_the_time_from_the_last_arrival(kind, named, times):
    (line,) = compare(made(kind, 1 << 25)).bandwidth
    assert (line.kind, line.group_size, line.count, line.median_us) == (named, 4, 12, 200.0)
    assert line.bus_bytes_per_s == pytest.approx(times * (1 << 25) / 200e-6)


def test_a_line_for_each_power_of_two():
    sizes = [1 << 20, (1 << 21) - 4, 1 << 21] * 4
    lines = compare(made("allreduce", sizes)).bandwidth
    assert [(one.least_bytes, one.most_bytes, one.count) for one in lines] == [
        (1 << 20, (1 << 21) - 4, 8), (1 << 21, 1 << 21, 4),
    ]  # fmt: skip


def test_a_group_that_is_not_complete_tells_no_bandwidth():
    assert compare(made("allreduce", 1 << 25)[:3]).bandwidth == ()


def test_kinds_without_a_definition_have_none():
    assert factor("barrier", 8) is None
    assert (factor("broadcast", 8), factor("sendrecv", 2)) == (1.0, 1.0)


def test_the_recorded_all_reduces_by_hand(examined):
    """Rank 0 always comes last: its kernels last as long as the transfer."""
    kernels = [e for e in raw("h200/ranks/tp/rank0")["traceEvents"]
               if e.get("cat") == "kernel" and "In msg nelems" in e.get("args", {})]  # fmt: skip
    rate = median(2 * e["args"]["In msg nelems"] / e["dur"] * 1e6 for e in kernels)  # bf16; 2(n-1)/n is 1
    (line,) = compare([examined(f"h200/ranks/tp/rank{i}") for i in (0, 1)]).bandwidth
    assert line.bus_bytes_per_s == pytest.approx(rate, rel=0.02)
