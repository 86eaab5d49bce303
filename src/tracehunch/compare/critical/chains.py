"""The moments of each thread at which it meets the GPU or another thread, and what it did between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.tree import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tracehunch.compare.critical.segments import Segments
    from tracehunch.trace.model import Int64, Trace


@dataclass(frozen=True, slots=True)
class Chain:
    """Moments of one thread in order; ``first`` is the number of its first node in the graph."""

    thread: int
    times_ns: Int64
    first: int
    calls: Int64  # rows that begin and return at a pair of nodes
    begin: Int64  # node of each call's begin; its return is the next one
    segments: Segments

    @property
    def nodes(self) -> Int64:
        """Return the numbers of its nodes."""
        return np.arange(self.first, self.first + self.times_ns.size)

    def at(self, moment_ns: int, *, last: bool = False) -> int:
        """Return the node of a moment that was given as a point: the first one, or the last one."""
        if last:
            return self.first + int(np.searchsorted(self.times_ns, moment_ns, "right")) - 1
        return self.first + int(np.searchsorted(self.times_ns, moment_ns, "left"))


def chain_of(  # what a chain is made of
    thread: int,
    calls: Int64,
    start_ns: Int64,
    end_ns: Int64,
    points_ns: Sequence[int],
    *,
    first: int,
    segments: Segments,
) -> Chain:
    """Order a thread's calls (those inside another are part of it) and points in time."""
    order = np.lexsort((-end_ns, start_ns))
    calls, start, end = calls[order], start_ns[order], end_ns[order]
    reach = np.r_[np.iinfo(np.int64).min, np.maximum.accumulate(end)[:-1]] if end.size else end
    outer = start >= reach
    calls = calls[outer]
    moments = np.stack([start[outer], end[outer]], axis=1).reshape(-1)
    points = np.unique(np.array(points_ns, dtype=np.int64))
    points = points[~_within_call(points, start[outer], end[outer])]
    times = np.r_[moments, points]
    # a point at the moment of a call stands before its begin, or after its return
    before = 2 * np.searchsorted(start[outer], points, "left") - 0.5
    rank = np.r_[np.arange(moments.size), before]
    placed = np.lexsort((rank, times))
    where = np.empty(times.size, dtype=np.int64)
    where[placed] = np.arange(times.size)
    return Chain(thread, times[placed], first, calls, first + where[: moments.size : 2], segments)


def _within_call(points: Int64, start: Int64, end: Int64) -> NDArray[np.bool_]:
    if not start.size:
        return np.zeros(points.size, dtype=bool)
    at = np.searchsorted(start, points, "left") - 1
    inside: NDArray[np.bool_] = (at >= 0) & (points < end[np.maximum(at, 0)])
    return inside


class CallNodes:
    """Finds the node at which a call begins; that of the call around it where it lies in another one."""

    def __init__(self, trace: Trace, chains: Mapping[int, Chain]) -> None:
        self._trace, self._chains = trace, chains
        self._begin = np.full(len(trace), NONE, dtype=np.int64)
        for chain in chains.values():
            self._begin[chain.calls] = chain.begin

    def begin(self, rows: Int64) -> Int64:
        """Return the nodes of some calls; the next node is that of a call's return."""
        found = self._begin[rows]
        for at in np.flatnonzero(found == NONE).tolist():
            chain = self._chains[int(self._trace.thread[rows[at]])]
            start = self._trace.start_ns[chain.calls]
            found[at] = chain.begin[int(np.searchsorted(start, self._trace.start_ns[rows[at]], "right")) - 1]
        return found
