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
    group, position = np.divmod(np.sort(group * by_start.size + rank[item]), by_start.size)
    start, end = start_ns[by_start[position]], end_ns[by_start[position]]
    reach = _reach(group, end)
    before = np.concatenate([[np.iinfo(np.int64).min], reach[:-1]])
    first = np.concatenate([[True], group[1:] != group[:-1]])
    added = np.where(first, end - start, np.maximum(end - np.maximum(start, before), 0))
    at = np.flatnonzero(first)
    return group[at], np.add.reduceat(added, at)


def _reach(group: Int64, end: Int64) -> Int64:
    """Return the running maximum of the ends within each group (groups ascend)."""
    number = np.cumsum(
        np.concatenate([[0], group[1:] != group[:-1]])
    )  # dense, so that the product stays small
    low, span = int(end.min()), int(end.max()) - int(end.min()) + 1
    if (int(number[-1]) + 1) * span < _MOST:
        start = number * span - low
        reach: Int64 = np.maximum.accumulate(end + start) - start
        return reach
    ends, code = np.unique(end, return_inverse=True)
    highest = np.maximum.accumulate(number * ends.size + code.reshape(-1))
    ranked: Int64 = ends[highest - number * ends.size]
    return ranked


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
