"""Whether what-ifs of one step can be told from that step alone, and what its neighbours say if not.

Steps overlap: a step's path may leave out what the GPU does last, as the next step's host work is under way
by then. Other times may move that border, and with it work from one step to the next. When a step is over,
with all its work, does not depend on the border.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from tracehunch.compare.critical.graph import Graph
    from tracehunch.compare.critical.scope import Target
    from tracehunch.compare.critical.simulate import Run
    from tracehunch.trace.model import Int64

_STEADY: Final = 0.05
"""By what part of a step its path and the time from the end of the one before may differ."""


class Steady:
    """The steps of a window, and how long each took from the end of the one before."""

    def __init__(self, graph: Graph, target: Target, run: Run) -> None:
        self._graph, self._target = graph, target
        marks = target.window.marks_ns
        self._steps = list(zip(marks[::2], marks[1::2], strict=True))
        self._before = self._took(run) if self._steps else np.zeros(0, dtype=np.int64)

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return len(self._steps)

    def is_border_sharp(self, length_ns: int) -> bool:
        """Tell whether a path of that length is as long as the target took from the end of the one before."""
        if self.steps < 2:  # there is no border
            return True
        at = next(at for at, (begin, _) in enumerate(self._steps) if begin == self._target.begin_ns)
        return abs(int(self._before[at]) - length_ns) <= _STEADY * length_ns

    def typical_change(self, run: Run) -> float:
        """Return by what factor the times of the steps change, the median of all; at most 1."""
        there = self._before > 0
        if not there.any():
            return 1.0
        return min(float(np.median(self._took(run)[there] / self._before[there])), 1.0)

    def _took(self, run: Run) -> Int64:
        """Time from when one step is over to when the next one is, all that was launched in it included."""
        graph, gpu = self._graph, self._graph.gpu
        time = np.array(run.time_ns, dtype=np.int64)
        ends = time[graph.start_of(np.arange(len(gpu), dtype=np.int64)) + 1]
        chain = graph.host.chains[self._target.window.thread]
        begins = [begin for begin, _ in self._steps]
        over = [int(time[chain.at(begins[0])])]
        over += [int(time[chain.at(end, last=True)]) for _, end in self._steps]
        until = [*begins, self._target.window.end_ns + 1]
        done = [int(ends[gpu.owner_ns < moment].max(initial=over[0])) for moment in until]
        return np.diff(np.maximum.accumulate(np.maximum(over, done)))
