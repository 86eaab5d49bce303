"""Build the graph of a window of time from a trace: every recorded moment follows from those before it.

Each moment's latest constraint gets the weight that makes it come out as it was recorded; the others get the
least that they can have needed. So a simulation with nothing changed gives the recorded times back, and one
with other weights keeps the dependencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.compare.critical.chains import Chain, chain_of
from tracehunch.compare.critical.edges import EdgeKind, EdgeList, Edges
from tracehunch.compare.critical.gpu import NEVER, Activities, Usual, activities_of, usual_of
from tracehunch.compare.critical.segments import Part, segments_of
from tracehunch.compare.critical.threads import Handover, handovers, without_idle
from tracehunch.compare.critical.waits import (
    HostWait,
    StreamWait,
    coinciding_waits,
    full_queue_waits,
    host_waits,
    stream_waits,
    waiting_mask,
)
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.tree import NONE, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Bool = NDArray[np.bool_]

_LEAST_LATENCY_NS: Final = 20_000
_LEAST_GAP_NS: Final = 10_000
_TIMES: Final = 4
"""A latency, or a gap on a stream, is what the device needs up to so much, or so many times the usual one."""


@dataclass(frozen=True, slots=True)
class Window:
    """What part of a trace to build: a process, the thread that the scope is on, a span, moments to keep."""

    process: int
    thread: int
    start_ns: int
    end_ns: int
    marks_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes are numbers; ``time_ns`` is when each was recorded, ``order`` one in which sources come first."""

    time_ns: Int64
    order: Int64
    edges: Edges
    chains: Mapping[int, Chain]  # by thread
    gpu: Activities
    first_activity: int  # node of the first one's start; its end is the next node
    waits: tuple[HostWait, ...]
    streams: tuple[StreamWait, ...]
    handed_over: int

    def start_of(self, activity: Int64) -> Int64:
        """Nodes at which activities start."""
        return self.first_activity + 2 * activity


class _Builder:
    """Collects the parts of a graph."""

    def __init__(self, tree: Tree, window: Window) -> None:
        self.tree, self.window = tree, window
        span = (window.start_ns, window.end_ns)
        self.gpu = activities_of(tree, window.process, span)
        self.usual: Usual = usual_of(tree, window.process)
        mask = waiting_mask(tree)
        self.waits = _all_waits(tree, self.gpu, _in_window(tree, np.flatnonzero(mask), window))
        recorded = stream_waits(tree, self.gpu, window.process, span)
        self.streams = (*recorded, *coinciding_waits(self.gpu, recorded))
        self.handovers, self.chains = _threads(tree, window, self.gpu, mask, self.waits)
        self.first_activity = sum(chain.times_ns.size for chain in self.chains.values())
        self.calls = _call_nodes(tree, self.chains)
        self.edges = EdgeList()

    def graph(self) -> Graph:
        """Put it together."""
        time, order = self._nodes()
        self._host()
        self._handovers()
        self._work()
        edges = self.edges.joined()
        fitting = np.flatnonzero(self._come_first(edges.source, edges.target))
        edges = Edges(*(getattr(edges, name)[fitting] for name in Edges.__slots__))
        return Graph(
            time,
            order,
            edges,
            self.chains,
            self.gpu,
            self.first_activity,
            self.waits,
            self.streams,
            len(self.handovers),
        )

    def _come_first(self, source: Int64, target: Int64) -> Bool:
        found: Bool = self.place[source] < self.place[target]
        return found

    def _nodes(self) -> tuple[Int64, Int64]:
        """Return the times of all nodes, and an order in which every source comes before its target."""
        chains = list(self.chains.values())
        resumed = {one.resumed_ns for one in self.handovers}
        waited = {int(self.tree.trace.end_ns()[wait.row]) for wait in self.waits}
        late = np.array(sorted(resumed | waited), dtype=np.int64)
        host = [chain.times_ns for chain in chains]
        keys = [4 * time + 2 * np.isin(time, late) for time in host]
        # what waits for the GPU, or another thread, comes after what ends at the same moment
        time = np.concatenate([*host, np.stack([self.gpu.start_ns, self.gpu.end_ns], axis=1).reshape(-1)])
        anchor = np.where(self._is_awaited_copy(), self.gpu.called_ns, self.gpu.launched_ns)
        key = np.concatenate([*keys, np.repeat(4 * anchor + 1 + 2 * np.isin(anchor, late), 2)])
        stamp = np.concatenate([np.zeros(self.first_activity, np.int64), np.repeat(self.gpu.start_ns, 2)])
        order = np.lexsort((np.arange(time.size), stamp, key))
        self.place = np.empty(time.size, dtype=np.int64)
        self.place[order] = np.arange(time.size)
        return time, order

    def _is_awaited_copy(self) -> Bool:
        held = [wait.row for wait in self.waits if wait.is_copy and wait.removable]
        found: Bool = np.isin(self.gpu.launch, held)
        return found

    def _host(self) -> None:
        """Add that a thread does one thing after another; calls that wait for the GPU return after it."""
        overhead = {wait.row: self._overhead_ns(wait) for wait in self.waits}
        for chain in self.chains.values():
            nodes = chain.nodes
            parts = chain.segments.lengths(chain.times_ns)
            at = np.flatnonzero(np.isin(chain.calls, list(overhead)))
            waits = chain.begin[at] - chain.first
            parts[waits] = 0
            parts[waits, Part.WAIT] = [overhead[row] for row in chain.calls[at].tolist()]
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
        self._returns(overhead)

    def _overhead_ns(self, wait: HostWait) -> int:
        trace = self.tree.trace
        ended = int(self.gpu.end_ns[list(wait.targets)].max())
        return max(int(trace.end_ns()[wait.row]) - max(int(trace.start_ns[wait.row]), ended), 0)

    def _returns(self, overhead: Mapping[int, int]) -> None:
        pairs = [(wait.row, target) for wait in self.waits for target in wait.targets]
        if not pairs:
            return
        rows, targets = (np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True))
        begin = self.calls(rows)
        trace = self.tree.trace
        slack = trace.end_ns()[rows] - self.gpu.end_ns[targets]
        weight = np.minimum(np.array([overhead[row] for row in rows.tolist()]), slack)
        owner = trace.start_ns[rows]
        self.edges.add(
            EdgeKind.RETURN,
            self._end(targets),
            begin + 1,
            weight,
            owner,
            row=rows,
            parts=Part.WAIT,
        )

    def _handed(self, chain: Chain) -> list[tuple[int, int]]:
        """Stretches of a chain (positions of edges) in which it only waits for other threads, or for work."""
        if chain.thread == self.window.thread:
            spans = [(one.called_ns, one.resumed_ns) for one in self.handovers]
            nodes = [(chain.at(first, last=True), chain.at(last)) for first, last in spans]
        else:
            begun = [one.begun_ns for one in self.handovers if one.thread == chain.thread]
            nodes = [(chain.at(moment) - 1, chain.at(moment)) for moment in begun]
        return [(max(first - chain.first, 0), last - chain.first) for first, last in nodes]

    def _handovers(self) -> None:
        caller = self.chains[self.window.thread]
        for one in self.handovers:
            engine = self.chains[one.thread]
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

    def _start(self, activity: Int64) -> Int64:
        return self.first_activity + 2 * activity

    def _end(self, activity: Int64) -> Int64:
        return self._start(activity) + 1

    def _work(self) -> None:
        """Add that activities take their time, and start after what they wait for."""
        gpu = self.gpu
        every = np.arange(len(gpu), dtype=np.int64)
        self.edges.add(
            EdgeKind.WORK,
            self._start(every),
            self._end(every),
            gpu.end_ns - gpu.start_ns,
            gpu.called_ns,
            row=gpu.row,
        )
        launched = np.flatnonzero(gpu.launch != NONE)
        begin = self.calls(gpu.launch[launched])
        held = self._is_awaited_copy()[launched]
        base = np.where(held, gpu.called_ns[launched], gpu.launched_ns[launched])
        followed = np.flatnonzero(gpu.previous != NONE)
        after = gpu.previous[followed]
        events = np.array([(w.activity, w.target) for w in self.streams], dtype=np.int64).reshape(-1, 2)
        activity = np.r_[launched, followed, events[:, 0]]
        kind = np.repeat(
            [EdgeKind.LAUNCH, EdgeKind.STREAM, EdgeKind.EVENT], [launched.size, followed.size, len(events)]
        )
        source = np.r_[np.where(held, begin, begin + 1), self._end(after), self._end(events[:, 1])]
        base = np.r_[base, gpu.end_ns[after], gpu.end_ns[events[:, 1]]]
        fits = self._come_first(source, self._start(activity))
        self._starts(activity[fits], kind[fits], source[fits], base[fits])
        # no earlier than its call begins, whatever that call may take
        early = np.minimum(gpu.start_ns[launched] - gpu.called_ns[launched], 0)
        self._add_starts(EdgeKind.LAUNCH, launched, begin, early, early)

    def _starts(self, activity: Int64, kind: Int64, source: Int64, base_ns: Int64) -> None:
        """Add what activities wait for; the latest gets all of the time that it took."""
        start = self.gpu.start_ns[activity]
        took = start - base_ns
        usual = np.where(kind == EdgeKind.LAUNCH, self.usual.latency_ns, self.usual.gap_ns)
        ready = np.minimum(base_ns + usual, start)
        order = np.lexsort((base_ns, ready, activity))
        last = order[np.r_[np.diff(activity[order]) != 0, True][: order.size]]
        weight = np.minimum(usual, took)
        weight[last] = took[last]
        least = np.where(kind == EdgeKind.LAUNCH, _LEAST_LATENCY_NS, _LEAST_GAP_NS)
        allowed = np.minimum(np.maximum(_TIMES * usual, least), weight)
        for one in (EdgeKind.LAUNCH, EdgeKind.STREAM, EdgeKind.EVENT):
            mine = kind == one
            self._add_starts(one, activity[mine], source[mine], weight[mine], allowed[mine])

    def _add_starts(
        self, kind: EdgeKind, activity: Int64, source: Int64, weight_ns: Int64, usual_ns: Int64
    ) -> None:
        gpu = self.gpu
        self.edges.add(
            kind,
            source,
            self._start(activity),
            weight_ns,
            gpu.called_ns[activity],
            row=gpu.row[activity],
            usual_ns=usual_ns,
        )


def graph_of(tree: Tree, window: Window) -> Graph:
    """Build the graph of a window."""
    return _Builder(tree, window).graph()


def _in_window(tree: Tree, rows: Int64, window: Window) -> Int64:
    trace = tree.trace
    start = trace.start_ns[rows]
    inside = (start != UNKNOWN_NS) & (start >= window.start_ns) & (start < window.end_ns)
    found: Int64 = rows[inside & (trace.process[rows] == window.process)]
    return found


def _all_waits(tree: Tree, gpu: Activities, rows: Int64) -> tuple[HostWait, ...]:
    found = host_waits(tree, gpu, rows)
    known = {wait.row for wait in found}
    return (*found, *(wait for wait in full_queue_waits(tree, gpu) if wait.row not in known))


def _threads(
    tree: Tree,
    window: Window,
    gpu: Activities,
    mask: Bool,
    waits: Sequence[HostWait],
) -> tuple[list[Handover], dict[int, Chain]]:
    """Find the threads that matter, who works for whom, and their moments."""
    trace = tree.trace
    calls = np.unique(np.r_[gpu.launch[gpu.launch != NONE], [wait.row for wait in waits]].astype(np.int64))
    working = trace.thread[np.r_[_in_window(tree, tree.ops, window), calls]]
    threads = np.unique(np.r_[working, window.thread].astype(np.int64))
    span = (window.start_ns, window.end_ns)
    segments = {thread: segments_of(tree, thread, span, mask) for thread in threads.tolist()}
    others = {one: found for one, found in segments.items() if one != window.thread}
    handed = handovers(segments[window.thread], others, tree.autograd_threads)
    chains: dict[int, Chain] = {}
    first = 0
    launching = {*trace.thread[calls].tolist(), window.thread, *(one.thread for one in handed)}
    for thread in sorted(launching):
        mine = calls[trace.thread[calls] == thread]
        points = _points(thread, window, handed)
        if thread != window.thread:
            own = [one for one in handed if one.thread == thread]
            segments[thread] = without_idle(segments[thread], own)
        chain = chain_of(
            thread,
            mine,
            trace.start_ns[mine],
            np.minimum(trace.end_ns()[mine], window.end_ns),
            points,
            first=first,
            segments=segments[thread],
        )
        chains[thread] = chain
        first += chain.times_ns.size
    return handed, chains


def _points(thread: int, window: Window, handed: Sequence[Handover]) -> list[int]:
    if thread == window.thread:
        spans = [(one.called_ns, one.resumed_ns) for one in handed]
        marks = [mark for mark in window.marks_ns if not any(first < mark < last for first, last in spans)]
        moments = (moment for span in spans for moment in span)
        return [window.start_ns, window.end_ns, *marks, *moments]
    mine = (one for one in handed if one.thread == thread)
    return [window.start_ns, *(moment for one in mine for moment in (one.begun_ns, one.done_ns))]


class _call_nodes:  # noqa: N801  # a function that remembers
    """Node at which a call begins; that of the call around it where it lies in another one."""

    def __init__(self, tree: Tree, chains: Mapping[int, Chain]) -> None:
        self._trace, self._chains = tree.trace, chains
        self._begin = np.full(len(tree.trace), NONE, dtype=np.int64)
        for chain in chains.values():
            self._begin[chain.calls] = chain.begin

    def __call__(self, rows: Int64) -> Int64:
        found = self._begin[rows]
        for at in np.flatnonzero(found == NONE).tolist():
            chain = self._chains[int(self._trace.thread[rows[at]])]
            start = self._trace.start_ns[chain.calls]
            found[at] = chain.begin[int(np.searchsorted(start, self._trace.start_ns[rows[at]], "right")) - 1]
        return found


__all__ = ["NEVER", "Graph", "Window", "graph_of"]
