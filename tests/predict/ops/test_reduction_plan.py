"""How reductions are divided and how long they take, held against the kernels of real traces."""

from itertools import pairwise
from statistics import median

import pytest
from reductions_in_traces import in_traces

from tracehunch.predict.ops import tensor
from tracehunch.predict.ops.call import steps_of
from tracehunch.predict.ops.reduction_plan import layout, plan
from tracehunch.predict.ops.times import step_time

ROWS = range(1, 4097)
SPLIT = 1021  # rows from which on blocks of four rows of threads share a result, of a vector of columns


@pytest.fixture(scope="module")
def traced():
    return list(in_traces())


def sums_us(h200, columns):
    runs = (steps_of("sum", (tensor((rows, columns), "bf16"),), {"dim": 0}, h200)[-1] for rows in ROWS)
    return [step_time(run, h200.gpu).mid_us for run in runs]


def test_blocks_and_grids_are_those_of_the_traces(traced, h200):
    assert len(traced) >= 50
    for one in traced:
        dims = one.dims or tuple(range(len(one.tensor.shape)))
        wide = one.op in ("sum", "mean") and one.tensor.itemsize == 2
        found = plan(layout(one.tensor, dims, 2 if one.op == "var" else 8 if wide else 4), h200.gpu.sms)
        assert (found.grid, found.sharing, 1) == one.grid, one
        assert (found.columns, found.rows, 1) == one.block, one
        assert (found.sharing > 1) == one.cleared, one


def test_sums_over_rows_take_what_traces_measured(traced):
    sums = [one for one in traced if one.op == "sum" and one.dims == (0,) and one.block[1] == 4]
    ratios = [one.time.mid_us / one.us for one in sums]
    assert len(sums) >= 10
    assert all(0.8 < ratio < 1.25 for ratio in ratios)
    assert median(abs(ratio - 1) for ratio in ratios) < 0.08


def test_ranges_hold_the_medians_of_traces(traced):
    inside = [one.time.low_us <= one.us <= one.time.high_us for one in traced]
    assert sum(inside) / len(inside) >= 0.9


@pytest.mark.parametrize("columns", [512, 768, 1024, 4096])
def test_a_row_more_changes_little_where_the_plan_does_not_change_much(h200, columns):
    us = sums_us(h200, columns)
    jumps = {
        rows: max(was, now) / min(was, now) for rows, (was, now) in zip(ROWS[1:], pairwise(us), strict=True)
    }
    assert (
        jumps.pop(SPLIT) < 2.1
    )  # 64 loads one after the other become 4, and blocks that wait for each other
    assert jumps.pop(64) < 1.7  # 16 loads become 4, of four rows of threads
    assert max(jumps.values()) < 1.2
