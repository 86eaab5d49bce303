"""Unions of intervals on the time axis."""

from typing import Final

import numpy as np

from tracehunch.trace.model import Int64

_MOST: Final = 2**62


def union_by_group(group: Int64, start_ns: Int64, end_ns: Int64, item: Int64) -> tuple[Int64, Int64]:
    """For each group the length of the union of its intervals.

    ``group`` and ``item`` are parallel: item ``i`` (an index into the times) is in group ``g``, and may be in
    several. Returns the groups that have items, ascending, and their lengths.
    """
    if not item.size:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if item.size < start_ns.size:  # a few of many
        start_ns, end_ns, item = start_ns[item], end_ns[item], np.arange(item.size)
    by_start = np.argsort(start_ns, kind="stable")
    rank = np.empty(by_start.size, dtype=np.int64)
    rank[by_start] = np.arange(by_start.size)
    order = np.argsort(group * by_start.size + rank[item], kind="stable")  # nearly in order: soon done
    group, item = group[order], item[order]
    first = np.flatnonzero(np.diff(group, prepend=group[0] - 1))
    return group[first], np.add.reduceat(_added(first, start_ns[item], end_ns[item]), first)


def _added(first: Int64, start: Int64, end: Int64) -> Int64:
    """Return what each interval adds to those before it in its group; groups begin at ``first``."""
    low = int(start.min())
    span = int(end.max()) - low + 1
    n = np.diff(np.append(first, start.size))
    if first.size * span < _MOST:  # each group is moved behind all that end in the groups before it
        offset = np.repeat(np.arange(first.size) * span - low, n)
        start, end = start + offset, end + offset
        reach = np.maximum.accumulate(end)
    else:
        ends, code = np.unique(end, return_inverse=True)
        offset = np.repeat(np.arange(first.size) * ends.size, n)
        reach = ends[np.maximum.accumulate(code.reshape(-1) + offset) - offset]
        reach[first[1:] - 1] = start[first[1:]]
    begins = np.append(start[:1], np.maximum(start[1:], reach[:-1]))
    added: Int64 = np.maximum(end - begins, 0)
    return added


class Cover:
    """How much of the time up to a moment some intervals cover."""

    def __init__(self, start_ns: Int64, end_ns: Int64) -> None:
        order = np.argsort(start_ns, kind="stable")
        start, end = start_ns[order], end_ns[order]
        reach = np.maximum.accumulate(end) if end.size else end
        opens = np.flatnonzero(np.concatenate([[True], start[1:] > reach[:-1]])) if start.size else start
        self._start: Int64 = start[opens]
        self._end: Int64 = reach[np.append(opens[1:] - 1, reach.size - 1)] if start.size else end
        self._total = np.concatenate([[0], np.cumsum(self._end - self._start)])

    def until(self, time_ns: Int64) -> Int64:
        """Covered time before each moment."""
        n = np.searchsorted(self._start, time_ns, "left")
        over = np.zeros(time_ns.size, dtype=np.int64)
        begun = n > 0
        over[begun] = np.maximum(self._end[n[begun] - 1] - time_ns[begun], 0)
        covered: Int64 = self._total[n] - over
        return covered
