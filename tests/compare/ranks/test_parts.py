"""Small parts: keys, since when, names of kinds, what the host did."""

from __future__ import annotations

import numpy as np
import pytest

from tracehunch.compare.ranks.by_rank import ByRank
from tracehunch.compare.ranks.excess import over_the_others
from tracehunch.compare.ranks.keys import distinct_rows
from tracehunch.compare.ranks.since import since
from tracehunch.compare.ranks.table import ends_together, plain


@pytest.mark.parametrize("scale", [1, 10**15])
def test_distinct_rows_are_those_of_numpy(scale):
    noise = np.random.default_rng(0)
    columns = [noise.integers(-3, 4, 500) * scale for _ in range(4)]
    found, where = distinct_rows(*columns)
    expected, inverse = np.unique(np.stack(columns), axis=1, return_inverse=True)
    assert np.array_equal(np.stack(found), expected)
    assert np.array_equal(where, inverse.reshape(-1))


def test_excess_is_over_the_median_of_the_others():
    values = np.array([[1.0, 5.0], [2.0, np.nan], [9.0, 1.0]])
    found = over_the_others(values)
    assert found[:, 0].tolist() == [-1.0, 1.0, 8.0]
    assert found[[0, 2], 1].tolist() == [4.0, -4.0]
    assert np.isnan(found[1, 1])


def test_by_rank_is_a_mapping():
    found = ByRank(np.array([1, 4, 9]), np.array([10, 40, 90]))
    assert dict(found) == {1: 10, 4: 40, 9: 90}
    assert found == {1: 10, 4: 40, 9: 90}
    assert 5 not in found


@pytest.mark.parametrize(
    ("extra", "phrase"),
    [
        ([9, 9, 9, 9], "throughout"),
        ([0, 9, 9, 9], "from step 3 on"),
        ([0, 0, 9, 8, 9, 1, 9, 9], "from step 4 on"),
        ([9, 0, 9, 0, 9, 0], "in every second step"),
        ([0, 0, 9, 0], "in step 4 only"),
        ([0, 0, 0], None),
    ],
)
def test_since_when(extra, phrase):
    found = since(np.array(extra, dtype=float), 2.0, range(2, 2 + len(extra)))
    assert (found and found.phrase()) == phrase


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce", "allreduce"), ("allreduce_coalesced", "allreduce"), ("_allgather_base", "allgather"),
        ("allgather_into_tensor_coalesced", "allgather"), ("_reduce_scatter_base", "reducescatter"),
        ("all_to_allv", "alltoall"), ("send", "sendrecv"), ("recv+send", "sendrecv"), ("reduce", "reduce"),
        ("broadcast", "broadcast"), ("gather", "gather"), ("broadcast+send", "broadcast+send"),
    ],
)  # fmt: skip
def test_kinds(name, kind):
    assert plain(name) == kind


def test_which_kinds_end_together():
    kinds = ("allreduce", "allgather", "broadcast", "reduce", "sendrecv")
    assert [one for one in kinds if ends_together(one)] == ["allreduce", "allgather"]


def test_host_time_by_op_adds_up_to_the_time_in_ops(examined):
    """Without children each instant of a thread counts once, so no op can take more than the recording."""
    one = examined("h200/ranks/ddp/rank0")
    times = one.host_time_us_by_op
    assert 0 < times["aten::mm"] < 30_000
    threads = 2  # the program's and autograd's
    assert sum(times.values()) <= threads * (one.end_ns - one.start_ns) / 1e3 * 1.01
    assert "cudaLaunchKernel" not in times


def test_a_synchronisation_is_time_that_the_host_is_held_up(examined):
    held = {step.number: step.held_ns for step in examined("h200/ranks/ddp/rank1").steps}
    assert held[2] == pytest.approx(6_759_000, abs=2_000)  # cudaEventSynchronize, in the raw JSON
