"""The Python frames around a host row."""

from functools import cached_property

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree.nesting import NONE, nest
from tracehunch.tree.timeline import Timeline


class Frames:
    """The Python frames of a trace, nested when first asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def around(self, row: int) -> list[int]:
        """Rows of the Python frames around a host row, innermost first."""
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
    def _nested(self) -> tuple[Timeline, Int64]:
        trace = self._trace
        rows = trace.rows(Cat.PYTHON_FUNCTION)
        rows = rows[trace.start_ns[rows] != UNKNOWN_NS]
        found = nest(trace.thread[rows], trace.start_ns[rows], trace.end_ns()[rows], np.zeros(rows.size))
        ordered = rows[found.order]
        return Timeline(ordered, trace.thread[ordered], trace.start_ns[ordered]), found.parent
