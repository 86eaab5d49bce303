"""The stretches in which no GPU activity ran on a device, and the activity that ended each."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.facts.counts import closing_wait
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.tree import NONE, Link, Tree
from tracehunch.tree.keys import distinct

ARRIVAL_NS: Final = 20_000
"""From the end of a launch to the start of its work on an idle GPU: 1 to 3 us on NVIDIA, up to 17 on AMD."""
_MOST: Final = 95
"""Percentile of what runs before its launch: a single wrong link says nothing about the clocks."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """One entry per gap, by device and time; times in nanoseconds of the trace."""

    device: Int64
    start_ns: Int64
    end_ns: Int64
    next_row: Int64  # GPU row that ended it; NONE where the window did
    window: tuple[int, int]  # in which there are gaps

    def __len__(self) -> int:
        return self.start_ns.size


def gaps_of(tree: Tree) -> Gaps:
    """Find the gaps of every device that the program used, in the recorded window, by the host's clock."""
    trace = tree.trace
    rows = trace.gpu.row.astype(np.int64)
    known = trace.start_ns[rows] != UNKNOWN_NS
    rows, device = rows[known], trace.gpu.device[known].astype(np.int64)
    shift = clock_shift_ns(tree)
    window = _idle_window(tree, shift)
    none = np.zeros(0, dtype=np.int64)
    parts = [(none, none, none, none)] + [
        _of_device(tree, number, rows[device == number], shift, window)
        for number in distinct(device).tolist()
    ]
    numbers, opens, closes, following = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Gaps(numbers, opens, closes, following, window)


def windows_of(tree: Tree) -> dict[int, tuple[int, int]]:
    """For each device that the program used when it could have had work, by the host's clock.

    Its gaps and its activities fill it, but for the stretches in which the profiler was off.
    """
    trace, shift = tree.trace, clock_shift_ns(tree)
    begin, stop = _idle_window(tree, shift)
    rows = trace.gpu.row.astype(np.int64)
    known = trace.start_ns[rows] != UNKNOWN_NS
    found = {}
    for number in distinct(trace.gpu.device[known]).tolist():
        mine = rows[known & (trace.gpu.device == number)]
        first = int(mine[np.argmin(trace.start_ns[mine])])
        found[number] = _limits(tree, first, int(trace.end_ns()[mine].max()) + shift, shift, (begin, stop))
    return found


def _limits(tree: Tree, first: int, last_end_ns: int, shift: int, window: tuple[int, int]) -> tuple[int, int]:
    """Return the window of a device, given the row of its first activity and the end of its last."""
    begin, stop = window
    if _was_queued(tree, first, shift):
        begin = int(tree.trace.start_ns[first]) + shift
    return begin, max(stop, last_end_ns)


def clock_shift_ns(tree: Tree) -> int:
    """How much the GPU's clock is behind the host's, at least: work seems to run before it was launched."""
    if not tree.skewed:
        return 0
    trace = tree.trace
    rows = trace.gpu.row[tree.launch[trace.gpu.row] != NONE]
    launched, begun = trace.start_ns[tree.launch[rows]], trace.start_ns[rows]
    known = (launched != UNKNOWN_NS) & (begun != UNKNOWN_NS)
    return max(int(np.percentile((launched - begun)[known], _MOST)), 0) if known.any() else 0


def _idle_window(tree: Tree, shift: int) -> tuple[int, int]:
    """Return the recorded window without the wait in which the profiler flushes its buffers at the end."""
    trace, window = tree.trace, tree.window
    gpu = trace.gpu.row[trace.start_ns[trace.gpu.row] != UNKNOWN_NS]
    closing = closing_wait(tree)
    begin, end = window.start_ns, window.end_ns
    if shift:
        host = trace.start_ns[np.r_[tree.ops, tree.launches]]
        begin = int(np.r_[host[host != UNKNOWN_NS], trace.start_ns[gpu] + shift].min())
    if closing != NONE and gpu.size:
        end = min(end, max(int(trace.start_ns[closing]), int(trace.end_ns()[gpu].max()) + shift))
    return begin, max(begin, end)


def _of_device(
    tree: Tree, device: int, rows: Int64, shift: int, window: tuple[int, int]
) -> tuple[Int64, Int64, Int64, Int64]:
    trace = tree.trace
    rows = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    reach = np.maximum.accumulate(trace.end_ns()[rows]) + shift
    begin, stop = _limits(tree, int(rows[0]), int(reach[-1]), shift, window)
    closes = np.r_[trace.start_ns[rows] + shift, stop]
    opens = np.r_[begin, reach]
    following = np.r_[rows, NONE]
    empty = closes > opens
    opens, closes, following = _without_unrecorded(tree, opens[empty], closes[empty], following[empty])
    return np.full(opens.size, device, dtype=np.int64), opens, closes, following


def _was_queued(tree: Tree, row: int, shift: int) -> bool:
    """Tell whether a device's first recorded activity waited for its turn.

    Then the device had been at work all the time, on what was launched before the recording began.
    """
    launch = int(tree.launch[row])
    if launch == NONE:
        return int(tree.link[row]) == Link.OUTSIDE_WINDOW
    begun, launched = int(tree.trace.start_ns[row]) + shift, int(tree.trace.end_ns()[launch])
    return begun > launched + ARRIVAL_NS


def _without_unrecorded(
    tree: Tree, opens: Int64, closes: Int64, following: Int64
) -> tuple[Int64, Int64, Int64]:
    """Cut the stretches in which the profiler was off out of the gaps."""
    for start, end in tree.window.gaps:
        left, right = np.minimum(closes, start), np.maximum(opens, end)
        before, after = left > opens, closes > right
        opens, closes, following = (
            np.r_[opens[before], right[after]],
            np.r_[left[before], closes[after]],
            np.r_[following[before], following[after]],
        )
        order = np.argsort(opens, kind="stable")
        opens, closes, following = opens[order], closes[order], following[order]
    return opens, closes, following
