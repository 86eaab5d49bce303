"""When everything would happen with given weights, and the chain of constraints that led to a moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.tree import NONE

if TYPE_CHECKING:
    from tracehunch.compare.critical.graph import Graph
    from tracehunch.trace.model import Int64

DROPPED: Final = -(2**61)
"""Weight of an edge that constrains nothing."""


@dataclass(frozen=True, slots=True)
class Run:
    """``time_ns`` of every node, and the edge that held it up last (NONE: it had none)."""

    time_ns: list[int]
    last: list[int]


@dataclass(frozen=True, slots=True)
class Walk:
    """Edges from an end backward, each with the span of time that it accounts for; without gaps."""

    edge: list[int]
    start_ns: list[int]
    end_ns: list[int]


class Simulator:
    """One graph, to be run with many weights."""

    def __init__(self, graph: Graph) -> None:
        edges = graph.edges
        place = np.empty(graph.order.size, dtype=np.int64)
        place[graph.order] = np.arange(graph.order.size)
        self._by_target: Int64 = np.argsort(place[edges.target], kind="stable")
        counts = np.bincount(place[edges.target], minlength=graph.order.size)
        self._counts = counts.tolist()
        self._order = graph.order.tolist()
        self._source = edges.source[self._by_target].tolist()
        self._edge = self._by_target.tolist()
        self._recorded = graph.time_ns.tolist()
        self._all_sources = edges.source.tolist()

    def run(self, weight_ns: Int64) -> Run:
        """Work out all moments: each is as early as its constraints allow."""
        time, last = list(self._recorded), [NONE] * len(self._recorded)
        weight, source, edge = weight_ns[self._by_target].tolist(), self._source, self._edge
        at = 0
        for node, count in zip(self._order, self._counts, strict=True):
            if not count:
                continue
            best, held = DROPPED, NONE
            for at in range(at, at + count):  # noqa: B020  # goes on where the last node stopped
                reached = time[source[at]] + weight[at]
                if reached > best:
                    best, held = reached, edge[at]
            at += 1
            if held != NONE and best > DROPPED // 2:
                time[node], last[node] = best, held
        return Run(time, last)

    def walk(self, run: Run, node: int) -> Walk:
        """Go back from a node along what held each moment up, to one that nothing held up."""
        walk = Walk([], [], [])
        cursor = run.time_ns[node]
        while (edge := run.last[node]) != NONE:
            node = self._all_sources[edge]
            start = min(run.time_ns[node], cursor)
            walk.edge.append(edge)
            walk.start_ns.append(start)
            walk.end_ns.append(cursor)
            cursor = start
        return walk
