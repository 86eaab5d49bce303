"""Build the graph of a window of time from a trace: every recorded moment follows from those before it.

Each moment's latest constraint gets the weight that makes it come out as it was recorded; the others get the
least that they can have needed. So a simulation with nothing changed gives the recorded times back, and one
with other weights keeps the dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tracehunch.compare.critical.chains import CallNodes, Chain
from tracehunch.compare.critical.edges import EdgeKind, EdgeList, Edges
from tracehunch.compare.critical.gpu import Activities, Usual, activities_of, usual_of
from tracehunch.compare.critical.host import Host, host_of
from tracehunch.compare.critical.segments import Part
from tracehunch.compare.critical.starts import KINDS, starts_of, weights_of
from tracehunch.compare.critical.streams import StreamWait, coinciding_waits, stream_waits
from tracehunch.tree import NONE, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.compare.critical.waits import HostWait
    from tracehunch.compare.critical.window import Window
    from tracehunch.trace.model import Int64

Bool = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes are numbers; ``time_ns`` is when each was recorded, ``order`` one in which sources come first."""

    time_ns: Int64
    order: Int64
    edges: Edges
    host: Host
    gpu: Activities
    first_activity: int  # node of the first one's start; its end is the next node
    streams: tuple[StreamWait, ...]
    usual: Usual

    def start_of(self, activity: Int64) -> Int64:
        """Nodes at which activities start."""
        return self.first_activity + 2 * activity


class _Builder:
    """Collects the parts of a graph."""

    def __init__(self, tree: Tree, window: Window) -> None:
        self.tree, self.window = tree, window
        self.gpu = activities_of(tree, window.process, window.span)
        recorded = stream_waits(tree, self.gpu, window.process, window.span)
        self.streams = (*recorded, *coinciding_waits(self.gpu, recorded))
        self.host = host_of(tree, window, self.gpu)
        self.first_activity = self.host.nodes
        self.calls = CallNodes(tree.trace, self.host.chains)
        self.in_call = np.isin(self.gpu.launch, [wait.row for wait in self.host.waits if wait.sees_through])
        self.edges = EdgeList()

    def graph(self) -> Graph:
        """Put it together."""
        time, order = self._nodes()
        self._host()
        self._handovers()
        usual = usual_of(self.tree, self.window.process)
        self._work(usual)
        edges = self.edges.joined()
        fitting = np.flatnonzero(self._come_first(edges.source, edges.target))
        edges = Edges(*(getattr(edges, name)[fitting] for name in Edges.__slots__))
        return Graph(time, order, edges, self.host, self.gpu, self.first_activity, self.streams, usual)

    def _come_first(self, source: Int64, target: Int64) -> Bool:
        found: Bool = self.place[source] < self.place[target]
        return found

    def _nodes(self) -> tuple[Int64, Int64]:
        """Return the times of all nodes, and an order in which every source comes before its target."""
        resumed = {one.resumed_ns for one in self.host.handovers}
        waited = {int(self.tree.trace.end_ns()[wait.row]) for wait in self.host.waits}
        late = np.array(sorted(resumed | waited), dtype=np.int64)
        host = [chain.times_ns for chain in self.host.chains.values()]
        keys = [4 * time + 2 * np.isin(time, late) for time in host]
        # what waits for the GPU, or another thread, comes after what ends at the same moment
        time = np.concatenate([*host, np.stack([self.gpu.start_ns, self.gpu.end_ns], axis=1).reshape(-1)])
        anchor = np.where(self.in_call, self.gpu.called_ns, self.gpu.queued_ns)
        key = np.concatenate([*keys, np.repeat(4 * anchor + 1 + 2 * np.isin(anchor, late), 2)])
        stamp = np.concatenate([np.zeros(self.first_activity, np.int64), np.repeat(self.gpu.start_ns, 2)])
        order = np.lexsort((np.arange(time.size), stamp, key))
        self.place = np.empty(time.size, dtype=np.int64)
        self.place[order] = np.arange(time.size)
        return time, order

    def _host(self) -> None:
        """Add that a thread does one thing after another; calls that wait for the GPU return after it."""
        overhead = {wait.row: self._overhead_ns(wait) for wait in self.host.waits}
        part = {wait.row: wait.part for wait in self.host.waits}
        own = {wait.row: wait.own_ns for wait in self.host.waits}
        for chain in self.host.chains.values():
            nodes = chain.nodes
            parts = chain.segments.lengths(chain.times_ns)
            at = np.flatnonzero(np.isin(chain.calls, list(overhead)))
            waits = chain.begin[at] - chain.first
            parts[waits] = 0
            rows = chain.calls[at].tolist()
            parts[waits, [part[row] for row in rows]] = [max(overhead[row], own[row]) for row in rows]
            for first, last in self._handed(chain):
                parts[first:last] = 0
            row = np.full(nodes.size - 1, NONE, dtype=np.int64)
            row[chain.begin - chain.first] = chain.calls
            self.edges.add(
                EdgeKind.HOST,
                nodes[:-1],
                nodes[1:],
                parts.sum(axis=1),
                chain.times_ns[:-1],
                row=row,
                thread=chain.thread,
                parts=parts,
            )
        self._returns(overhead, part)

    def _overhead_ns(self, wait: HostWait) -> int:
        trace = self.tree.trace
        ended = int(self.gpu.end_ns[list(wait.targets)].max())
        return max(int(trace.end_ns()[wait.row]) - max(int(trace.start_ns[wait.row]), ended), 0)

    def _returns(self, overhead: Mapping[int, int], part: Mapping[int, Part]) -> None:
        pairs = [(wait.row, target) for wait in self.host.waits for target in wait.targets]
        if not pairs:
            return
        rows, targets = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
        begin = self.calls.begin(rows)
        trace = self.tree.trace
        slack = trace.end_ns()[rows] - self.gpu.end_ns[targets]
        weight = np.minimum(np.array([overhead[row] for row in rows.tolist()]), slack)
        parts = np.zeros((rows.size, len(Part)), dtype=np.int64)
        parts[np.arange(rows.size), [part[row] for row in rows.tolist()]] = np.maximum(weight, 0)
        self.edges.add(
            EdgeKind.RETURN,
            self._end(targets),
            begin + 1,
            weight,
            trace.start_ns[rows],
            row=rows,
            parts=parts,
        )

    def _handed(self, chain: Chain) -> list[tuple[int, int]]:
        """Stretches of a chain (positions of edges) in which it only waits for other threads, or for work."""
        if chain.thread == self.window.thread:
            spans = [(one.called_ns, one.resumed_ns) for one in self.host.handovers]
            nodes = [(chain.at(first, last=True), chain.at(last)) for first, last in spans]
        else:
            begun = [one.begun_ns for one in self.host.handovers if one.thread == chain.thread]
            nodes = [(chain.at(moment) - 1, chain.at(moment)) for moment in begun]
        return [(max(first - chain.first, 0), last - chain.first) for first, last in nodes]

    def _handovers(self) -> None:
        caller = self.host.chains[self.window.thread]
        for one in self.host.handovers:
            engine = self.host.chains[one.thread]
            for source, target, begun, ended in (
                (caller.at(one.called_ns, last=True), engine.at(one.begun_ns), one.called_ns, one.begun_ns),
                (engine.at(one.done_ns, last=True), caller.at(one.resumed_ns), one.done_ns, one.resumed_ns),
            ):
                self.edges.add(
                    EdgeKind.HANDOVER,
                    np.array([source]),
                    np.array([target]),
                    np.array([ended - begun]),
                    np.array([begun]),
                    thread=caller.thread,
                    parts=Part.OUTSIDE,
                )

    def _end(self, activity: Int64) -> Int64:
        return self._start(activity) + 1

    def _start(self, activity: Int64) -> Int64:
        return self.first_activity + 2 * activity

    def _work(self, usual: Usual) -> None:
        """Add that activities take their time, and start after what they wait for."""
        gpu = self.gpu
        every = np.arange(len(gpu), dtype=np.int64)
        took = gpu.end_ns - gpu.start_ns
        self.edges.add(EdgeKind.WORK, self._start(every), self._end(every), took, gpu.owner_ns, row=gpu.row)
        starts = starts_of(gpu, self.streams, self.in_call)
        is_launch = starts.kind == EdgeKind.LAUNCH
        source = self._end(starts.source)
        returned = np.where(starts.in_call, 0, 1)[is_launch]
        source[is_launch] = self.calls.begin(gpu.launch[starts.source[is_launch]]) + returned
        fits = self._come_first(source, self._start(starts.activity))
        starts, source = starts.only(fits), source[fits]
        weight, allowed = weights_of(starts, gpu, usual)
        for kind in KINDS:
            mine = starts.kind == kind
            self._add_starts(kind, starts.activity[mine], source[mine], weight[mine], allowed[mine])
        # no earlier than its call begins, whatever that call may take
        launched = np.flatnonzero(gpu.launch != NONE)
        early = np.minimum(gpu.start_ns[launched] - gpu.called_ns[launched], 0)
        begin = self.calls.begin(gpu.launch[launched])
        self._add_starts(EdgeKind.LAUNCH, launched, begin, early, early)

    def _add_starts(
        self, kind: EdgeKind, activity: Int64, source: Int64, weight_ns: Int64, usual_ns: Int64
    ) -> None:
        self.edges.add(
            kind,
            source,
            self._start(activity),
            weight_ns,
            self.gpu.owner_ns[activity],
            row=self.gpu.row[activity],
            usual_ns=usual_ns,
        )


def graph_of(tree: Tree, window: Window) -> Graph:
    """Build the graph of a window."""
    return _Builder(tree, window).graph()
