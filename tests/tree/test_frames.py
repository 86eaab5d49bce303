"""Frames around a row: looked up one by one, and gone up to from frame to frame."""

import numpy as np
import pytest

from tracehunch.trace import read
from tracehunch.trace.model import UNKNOWN_NS, Cat
from tracehunch.tree import link
from tracehunch.tree.frames import Frames

FILES = (
    "h200/models/llama_sdpa_train_stack",
    "h200/seeds/stack_sdpa_flash",
    "h200/situations/moe_loop_where_syncs",
    "h200_waits/alloc_empty_cache",
)


@pytest.mark.parametrize("name", FILES)
def test_both_ways_find_the_same_frames(h200, name):
    trace = read(h200.parent / f"{name}.json.gz")
    frames = Frames(trace)
    rows = np.flatnonzero((trace.cat != Cat.PYTHON_FUNCTION) & (trace.start_ns != UNKNOWN_NS))
    found = {row: frames._searched(row) for row in rows[::11].tolist()}
    assert any(len(around) > 5 for around in found.values())
    assert found == {row: frames._walked(row) for row in found}


@pytest.mark.parametrize("seed", range(40))
def test_so_they_do_where_frames_touch_and_cross(trace_of, events, seed):
    random = np.random.default_rng(seed)
    for start, length in random.integers(0, 12, (30, 2)).tolist():
        events.host("python_function", f"f{len(events)}", start, length)
    for start in range(25):
        events.op("aten::add", start, 1)
    trace = trace_of(events)
    frames = Frames(trace)
    for row in trace.rows(Cat.CPU_OP).tolist():
        assert frames._searched(row) == frames._walked(row)


def test_the_way_changes_and_the_answer_does_not(h200):
    tree = link(read(h200 / "seeds" / "stack_sdpa_flash.json.gz"))
    row = int(tree.ops[-1])
    assert len({tuple(tree.frames.around(row)) for _ in range(40)}) == 1
