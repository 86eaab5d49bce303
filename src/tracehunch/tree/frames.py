"""The Python frames around a host row."""

from functools import cached_property
from typing import Final

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree.nesting import NONE, nest
from tracehunch.tree.timeline import Timeline

_FEW: Final = 16
"""Up to so many rows are looked up one by one: nesting all frames takes as long as dozens of look-ups."""


class Frames:
    """The Python frames of a trace; nested once it is clear that many will be asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._asked = 0

    def around(self, row: int) -> list[int]:
        """Rows of the Python frames around a host row, innermost first."""
        self._asked += 1
        return self._searched(row) if self._asked <= _FEW else self._walked(row)

    def _searched(self, row: int) -> list[int]:
        """Look at every frame: of those that the row starts in each one that holds the last."""
        rows, threads, starts, ends = self._known
        start = self._trace.start_ns[row]
        at = np.flatnonzero((starts <= start) & (ends >= start) & (threads == self._trace.thread[row]))
        inner_first = at[np.lexsort((rows[at], -ends[at], starts[at]))][::-1].tolist()
        found: list[int] = []
        inner = NONE
        for one in inner_first:
            if inner == NONE or (ends[one] >= ends[inner] and ends[one] > starts[inner]):
                found.append(int(rows[one]))
                inner = one
        return found

    def _walked(self, row: int) -> list[int]:
        """Go up from the last frame that began."""
        trace, (timeline, parent) = self._trace, self._nested
        start = trace.start_ns[row]
        thread = np.array([trace.thread[row]], dtype=np.int64)
        first, last = timeline.slices(thread, np.array([UNKNOWN_NS + 1]), np.array([start + 1]))
        at = int(last[0]) - 1 if last[0] > first[0] else NONE
        found = []
        while at != NONE:
            frame = int(timeline.rows[at])
            if trace.start_ns[frame] + max(int(trace.dur_ns[frame]), 0) >= start:
                found.append(frame)
            at = int(parent[at])
        return found

    @cached_property
    def _known(self) -> tuple[Int64, Int64, Int64, Int64]:
        """Rows, threads, starts and ends of the frames."""
        trace = self._trace
        rows = trace.rows(Cat.PYTHON_FUNCTION)
        rows = rows[trace.start_ns[rows] != UNKNOWN_NS]
        return rows, trace.thread[rows].astype(np.int64), trace.start_ns[rows], trace.end_ns()[rows]

    @cached_property
    def _nested(self) -> tuple[Timeline, Int64]:
        rows, threads, starts, ends = self._known
        found = nest(threads, starts, ends, np.zeros(rows.size))
        return Timeline(rows[found.order], threads[found.order], starts[found.order]), found.parent
