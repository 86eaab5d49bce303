"""What a thread did at each moment: the innermost row around it, without gaps or overlaps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.checks._idle_rows import is_data_loading, is_the_profilers, named
from tracehunch.facts.intervals import Cover
from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE, Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NESTED: Final = (Cat.USER_ANNOTATION, Cat.CPU_OP, *LAUNCH_CATS)


class Part(IntEnum):
    """What kind of host time a segment is."""

    OUTSIDE = 0
    OP = 1
    LAUNCH = 2
    WAIT = 3
    CALL = 4
    LOADING = 5
    PROFILER = 6
    IDLE = 7  # a thread between pieces of work that somebody else gave it


@dataclass(frozen=True, slots=True)
class Segments:
    """One thread's time from the first start to the last end. ``row``: NONE outside all rows."""

    start_ns: Int64
    end_ns: Int64
    row: Int64
    part: Int64

    def within(self, start_ns: int, end_ns: int) -> Segments:
        """Cut out a span."""
        first = int(np.searchsorted(self.end_ns, start_ns, "right"))
        last = int(np.searchsorted(self.start_ns, end_ns, "left"))
        start = np.maximum(self.start_ns[first:last], start_ns)
        end = np.minimum(self.end_ns[first:last], end_ns)
        return Segments(start, end, self.row[first:last], self.part[first:last])

    def lengths(self, times_ns: Int64) -> Int64:
        """Return how long the thread was in each part between moments: (moments - 1, parts)."""
        found = np.zeros((max(times_ns.size - 1, 0), len(Part)), dtype=np.int64)
        for part in Part:
            mine = self.part == part
            if mine.any():
                found[:, part] = np.diff(Cover(self.start_ns[mine], self.end_ns[mine]).until(times_ns))
        return found


def segments_of(tree: Tree, thread: int, span: tuple[int, int], waits: NDArray[np.bool_]) -> Segments:
    """Flatten the rows of a thread within a span of time; ``waits`` masks the calls that wait for the GPU."""
    rows = _rows(tree, thread, span)
    moments, state = _changes(tree, rows, span)
    start = np.r_[span[0], moments]
    end = np.r_[moments, span[1]]
    row = np.r_[NONE, state]
    there = end > start
    found = Segments(start[there], end[there], row[there], _parts(tree, row[there], waits))
    return _with_profiler(tree, thread, found, span)


def _rows(tree: Tree, thread: int, span: tuple[int, int]) -> Int64:
    trace = tree.trace
    rows = np.flatnonzero(trace.thread == thread)
    rows = rows[(trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] > 0)]
    rows = rows[(trace.start_ns[rows] < span[1]) & (trace.end_ns()[rows] > span[0])]
    found: Int64 = rows[np.isin(trace.cat[rows], _NESTED)]
    return found


def _changes(tree: Tree, rows: Int64, span: tuple[int, int]) -> tuple[Int64, Int64]:
    """Moments at which the innermost row changes, and which it is from then on."""
    start = np.maximum(tree.trace.start_ns[rows], span[0])
    end = np.minimum(tree.trace.end_ns()[rows], span[1])
    depth = _depth(tree, rows)
    moments = np.r_[start, end]
    begins = np.r_[np.ones(rows.size, dtype=bool), np.zeros(rows.size, dtype=bool)]
    state = np.r_[rows, tree.parent[rows]]
    # at one moment what ends comes first, the innermost before all; what begins after it, the outermost first
    order = np.lexsort((np.r_[depth, -depth], begins, moments))
    return moments[order], state[order]


def _depth(tree: Tree, rows: Int64) -> Int64:
    depth = np.zeros(rows.size, dtype=np.int64)
    at = tree.parent[rows].astype(np.int64)
    while (inside := np.flatnonzero(at != NONE)).size:
        depth[inside] += 1
        at[inside] = tree.parent[at[inside]]
    return depth


def _parts(tree: Tree, row: Int64, waits: NDArray[np.bool_]) -> Int64:
    trace = tree.trace
    if not row.size or not len(trace):
        return np.zeros(row.size, dtype=np.int64)
    cat = trace.cat[row]
    launch = np.zeros(len(trace), dtype=bool)
    launch[tree.launches] = True
    call = (cat == Cat.RUNTIME) | (cat == Cat.DRIVER)
    part = np.select(
        [call & waits[row], call & launch[row], call, cat == Cat.CPU_OP],
        [Part.WAIT, Part.LAUNCH, Part.CALL, Part.OP],
        Part.OUTSIDE,
    )
    part[row == NONE] = Part.OUTSIDE
    part[_is_inside(tree, row, named(tree, is_data_loading)) & ~call] = Part.LOADING
    return part.astype(np.int64)


def _is_inside(tree: Tree, row: Int64, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which rows are, or lie in, a row that is wanted."""
    found = np.zeros(row.size, dtype=bool)
    at = row.copy()
    while wanted.any() and (inside := np.flatnonzero(at != NONE)).size:
        found[inside] |= wanted[at[inside]]
        at[inside] = tree.parent[at[inside]]
    return found


def _with_profiler(tree: Tree, thread: int, base: Segments, span: tuple[int, int]) -> Segments:
    """Lay the profiler's own work over the segments, where the thread began nothing meanwhile."""
    trace = tree.trace
    found = np.flatnonzero((trace.cat == Cat.OVERHEAD) & (trace.start_ns != UNKNOWN_NS) & (trace.dur_ns > 0))
    found = found[named(tree, is_the_profilers, found)]
    start, end = trace.start_ns[found], trace.end_ns()[found]
    near = (start < span[1]) & (end > span[0])
    begun = np.sort(trace.start_ns[_rows(tree, thread, span)])
    held = near & (np.searchsorted(begun, start, "right") == np.searchsorted(begun, end, "left"))
    if not held.any():
        return base
    cuts = np.unique(np.clip(np.r_[base.start_ns, span[1], start[held], end[held]], *span))
    at = np.searchsorted(base.start_ns, cuts[:-1], "right") - 1
    over = np.zeros(at.size, dtype=bool)
    row = base.row[at]
    for one, first, last in zip(found[held].tolist(), start[held].tolist(), end[held].tolist(), strict=True):
        inside = (cuts[:-1] >= first) & (cuts[1:] <= last)
        over |= inside
        row[inside] = one
    return Segments(cuts[:-1], cuts[1:], row, np.where(over, Part.PROFILER, base.part[at]))
