"""Long stretches of a thread's time in which nothing starts or ends."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks._idle_rows import named
from tracehunch.checks._spans import Spans
from tracehunch.trace.model import LAUNCH_CATS, Cat, Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.keys import is_among

LONG_NS: Final = 400_000
"""Between two ops of a busy Python thread there are 3 to 20 us."""
STALL_NS: Final = 1_000_000
"""Between two steps, and around the backward, there are 0.1 to 0.6 ms without an op in any loop."""
_TIMES_TYPICAL: Final = 10
_ENOUGH: Final = 20
"""Gaps between ops from which on their median is typical."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """``library``: in one op of PyTorch with nothing recorded inside; ``outside``: in no op and no call.

    The row is that of the op, or of what starts at the end of the stretch.
    """

    library: Spans
    outside: Spans


def stretches(tree: Tree, rows: Int64, window: tuple[int, int]) -> Stretches:
    """Find the long stretches of a thread with these ops and calls, all of known duration, in a window."""
    trace = tree.trace
    start, stop = trace.start_ns[rows], trace.start_ns[rows] + trace.dur_ns[rows]
    above = tree.parent[rows]
    around = np.where(above == NONE, NONE, _work_at(tree, np.maximum(above, 0)))
    time = np.sort(np.r_[window[0], start, stop, window[1]])
    least = max(LONG_NS, _TIMES_TYPICAL * _typical_ns(start[around == NONE], stop[around == NONE]))
    long = np.flatnonzero(np.diff(time) >= least)
    inside = _inside_after(time[long], rows, start, stop, around)
    spans = Spans(
        time[long],
        time[long + 1],
        np.where(inside == NONE, _starting_at(time[long + 1], rows, start), inside),
    )
    in_op = (inside != NONE) & (trace.cat[inside] == Cat.CPU_OP)
    library = in_op & named(tree, lambda name: name.startswith("aten::"), inside)
    outside = (inside == NONE) | (in_op & ~library)
    return Stretches(spans.pick(library), spans.pick(outside))


def _starting_at(time: Int64, rows: Int64, start: Int64) -> Int64:
    """Return the row that starts at each of a few moments; NONE if none does."""
    found = np.full(time.size, NONE, dtype=np.int64)
    starting = np.flatnonzero(is_among(start, time))[::-1]  # the outermost comes first in the file
    found[np.searchsorted(time, start[starting])] = rows[starting]
    return found


def _typical_ns(start: Int64, stop: Int64) -> int:
    """Median time between ops and calls that are in no other; 0 where there are too few to tell."""
    order = np.argsort(start, kind="stable")
    between = start[order][1:] - np.maximum.accumulate(stop[order])[:-1]
    between = between[between > 0]
    return int(np.median(between)) if between.size >= _ENOUGH else 0


def _inside_after(time: Int64, rows: Int64, start: Int64, stop: Int64, around: Int64) -> Int64:
    """Return the op or call that a thread is in right after each of a few moments; NONE if in none.

    It is the innermost of those that start then; else what is around the outermost that ends then.
    """
    found = np.full(time.size, NONE, dtype=np.int64)
    ending = np.flatnonzero(is_among(stop, time))
    ending = ending[np.argsort(-start[ending], kind="stable")]
    found[np.searchsorted(time, stop[ending])] = around[ending]
    starting = np.flatnonzero(is_among(start, time))
    starting = starting[np.argsort(start[starting] - stop[starting], kind="stable")]
    found[np.searchsorted(time, start[starting])] = rows[starting]
    return found


def _work_at(tree: Tree, rows: Int64) -> Int64:
    """Return the op or call that each row is, or is in."""
    cat = tree.trace.cat[rows]
    is_call = (cat == LAUNCH_CATS[0]) | (cat == LAUNCH_CATS[1])
    found: Int64 = np.where(is_call, rows, tree.op[rows]).astype(np.int64)
    return found
