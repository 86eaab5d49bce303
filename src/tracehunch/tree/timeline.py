"""Rows by group and time, and the stretches of them that lie inside given spans."""

from typing import Any

import numpy as np

from tracehunch.trace.model import Int64


class Timeline:
    """Rows sorted by (group, start); what lies in a span of one group is a slice."""

    def __init__(self, rows: Int64, group: Any, start_ns: Int64) -> None:
        groups = np.asarray(group, dtype=np.int64)
        order = np.lexsort((start_ns, groups))
        self.rows: Int64 = rows[order]
        self.start_ns: Int64 = start_ns[order]
        ordered = groups[order]
        first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: ordered.size])
        ends = np.append(first[1:], ordered.size)[: first.size]
        names = ordered[first].tolist()
        self._bounds = dict(zip(names, zip(first.tolist(), ends.tolist(), strict=True), strict=True))

    def slices(self, group: Int64, start_ns: Int64, end_ns: Int64) -> tuple[Int64, Int64]:
        """For each span the slice (first, last) of the rows of its group that start in [start, end)."""
        first, last = np.zeros(group.size, dtype=np.int64), np.zeros(group.size, dtype=np.int64)
        for number in np.unique(group).tolist():
            if number not in self._bounds:
                continue
            low, high = self._bounds[number]
            mine = group == number
            starts = self.start_ns[low:high]
            first[mine] = low + np.searchsorted(starts, start_ns[mine], "left")
            last[mine] = low + np.searchsorted(starts, end_ns[mine], "left")
        return first, np.maximum(first, last)


def expand(first: Int64, last: Int64) -> tuple[Int64, Int64]:
    """Slices as pairs (number of the slice, position), in the order of the slices."""
    lengths = last - first
    owner = np.repeat(np.arange(first.size, dtype=np.int64), lengths)
    offset = np.cumsum(lengths) - lengths
    return owner, np.arange(owner.size, dtype=np.int64) - np.repeat(offset - first, lengths)
