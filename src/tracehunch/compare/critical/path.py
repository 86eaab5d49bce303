"""The path itself: which edges it consists of, and whose time each stretch of it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.critical.edges import EdgeKind
from tracehunch.compare.critical.gpu import NEVER
from tracehunch.compare.critical.model import Contributor, Kind
from tracehunch.compare.critical.segments import Part
from tracehunch.trace.model import Cat
from tracehunch.tree import NONE, Link, Tree
from tracehunch.tree.names import is_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.compare.critical.graph import Graph
    from tracehunch.compare.critical.scope import Target
    from tracehunch.compare.critical.simulate import Run, Simulator, Walk
    from tracehunch.trace.model import Int64

KIND_OF_PART: Final = {
    Part.OUTSIDE: Kind.OUTSIDE,
    Part.OP: Kind.OP,
    Part.LAUNCH: Kind.LAUNCH,
    Part.WAIT: Kind.WAIT,
    Part.CALL: Kind.CALL,
    Part.LOADING: Kind.LOADING,
    Part.PROFILER: Kind.PROFILER,
    Part.IDLE: Kind.UNKNOWN,
}
_EVENTS: Final = 5
_EARLIEST: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the path with one owner; ``row`` is a row of the trace, NONE where there is none."""

    kind: Kind
    name: str
    detail: str
    row: int
    time_ns: int


def path_of(graph: Graph, simulator: Simulator, run: Run, target: Target) -> Walk:
    """Return the part of a run's path that is the target's.

    From the end of the last step around it backward, as far as the host did it, or launched it, in the
    target's time; where the path of those steps leaves the target out, from the end of the target's own work.
    """
    found = None
    if target.next_ns is not None:
        walk = simulator.walk(run, _end(graph, run, target.window.thread, target.window.end_ns))
        found = _cut(graph, walk, target.begin_ns, target.next_ns)
    if found is None or not found.edge:
        walk = simulator.walk(run, _end(graph, run, target.window.thread, target.end_ns))
        found = _cut(graph, walk, _EARLIEST if target.chosen == "whole" else target.begin_ns, None)
    return found


def _end(graph: Graph, run: Run, thread: int, moment_ns: int) -> int:
    """Return the node that ends last: the host's at a moment, or of what was launched until then."""
    host = graph.host.chains[thread].at(moment_ns, last=True)
    gpu = graph.gpu
    mine = np.flatnonzero((gpu.owner_ns != NEVER) & (gpu.owner_ns < moment_ns))
    nodes = [host, *(graph.start_of(mine) + 1).tolist()]
    found: int = max(nodes, key=lambda node: (run.time_ns[node], node))
    return found


def _cut(graph: Graph, walk: Walk, begin_ns: int, next_ns: int | None) -> Walk:
    owner = graph.edges.owner_ns[walk.edge].tolist()
    linked = bool((graph.gpu.launch != NONE).any())
    first = 0
    while next_ns is not None and first < len(owner) and owner[first] >= next_ns:
        first += 1
    last = first
    while last < len(owner) and (owner[last] >= begin_ns or not linked):
        last += 1
    return type(walk)(walk.edge[first:last], walk.start_ns[first:last], walk.end_ns[first:last])


class Stretches:
    """Takes the edges of a path apart."""

    def __init__(self, tree: Tree, graph: Graph, collectives: Int64) -> None:
        self._tree, self._graph = tree, graph
        self._steps = is_step(tree.trace)
        self._collective = np.zeros(len(tree.trace), dtype=bool)
        self._collective[collectives] = True
        self._waits = {wait.row: wait for wait in graph.host.waits}

    def of(self, walk: Walk) -> Iterator[Stretch]:
        """Yield every stretch, the last one first; their times sum to the path's length."""
        edges = self._graph.edges
        for edge, start, end in zip(walk.edge, walk.start_ns, walk.end_ns, strict=True):
            if end <= start:
                continue
            kind, row = EdgeKind(int(edges.kind[edge])), int(edges.row[edge])
            if kind in (EdgeKind.HOST, EdgeKind.HANDOVER):
                yield from self._host(int(edges.thread[edge]), start, end)
            elif kind == EdgeKind.WORK:
                yield Stretch(self.kind_of(row), *self._work(row), row, end - start)
            elif kind == EdgeKind.RETURN:
                yield Stretch(KIND_OF_PART[self._waits[row].part], *self._call(row), row, end - start)
            else:
                yield from self._start(edge, kind, row, end - start)

    def launch_of(self, rows: Int64) -> Int64:
        """Rows of the calls that launched some activities; NONE where not known."""
        found: Int64 = self._tree.launch[rows].astype(np.int64)
        return found

    def without_launch(self, rows: Int64) -> int:
        """Count the activities of which nobody knows who launched them, and when."""
        return int(np.count_nonzero(np.isin(self._tree.link[rows], (Link.UNLINKED, Link.AMBIGUOUS))))

    def kind_of(self, row: int) -> Kind:
        """Tell what a GPU activity is."""
        if self._collective[row]:
            return Kind.COMMUNICATION
        cat = self._tree.trace.cat[row]
        return Kind.COPY if cat == Cat.MEMCPY else Kind.MEMSET if cat == Cat.MEMSET else Kind.KERNEL

    def op_of(self, row: int) -> str:
        """Name of the op that launched an activity; "" where not known."""
        op = int(self._tree.op[row])
        return "" if op == NONE else self._tree.trace.name_of(op)

    def _work(self, row: int) -> tuple[str, str]:
        name = self._tree.trace.name_of(row)
        op = self.op_of(row)
        return (op, name) if op and not self._collective[row] else (name, op)

    def _call(self, row: int) -> tuple[str, str]:
        return self._tree.trace.name_of(row), self.op_of(row)

    def _start(self, edge: int, kind: EdgeKind, row: int, took: int) -> Iterator[Stretch]:
        usual = min(max(int(self._graph.edges.usual_ns[edge]), 0), took)
        name, detail = self._work(row)
        if usual:
            yield Stretch(
                Kind.LATENCY if kind == EdgeKind.LAUNCH else Kind.DEVICE, f"before {name}", detail, row, usual
            )
        launch = int(self._tree.launch[row])
        if took > usual and kind == EdgeKind.LAUNCH and self._is_seen_through(launch):
            yield Stretch(Kind.WAIT, *self._call(launch), launch, took - usual)  # such as staging a copy
        elif took > usual:
            yield Stretch(Kind.UNKNOWN, f"before {name}", detail, row, took - usual)

    def _is_seen_through(self, call: int) -> bool:
        wait = self._waits.get(call)
        return wait is not None and wait.sees_through

    def _host(self, thread: int, start: int, end: int) -> Iterator[Stretch]:
        found = self._graph.host.chains[thread].segments.within(start, end)
        times = (found.end_ns - found.start_ns).tolist()
        for row, part, time in zip(found.row.tolist(), found.part.tolist(), times, strict=True):
            yield Stretch(KIND_OF_PART[Part(part)], *self._host_name(row, Part(part)), row, time)

    def _host_name(self, row: int, part: Part) -> tuple[str, str]:
        if part == Part.IDLE:
            return "a thread that waits for work", ""
        if part in (Part.LAUNCH, Part.WAIT, Part.CALL):
            return self._call(row)
        if row == NONE or self._steps[row]:
            return "between ops", ""
        name = self._tree.trace.name_of(row)
        return (f"between ops in {name}" if part == Part.OUTSIDE else name), ""


def contributors_of(tree: Tree, stretches: list[Stretch]) -> tuple[Contributor, ...]:
    """Put stretches of one kind and name together, longest first."""
    groups: dict[tuple[Kind, str, str], list[Stretch]] = {}
    for one in stretches:
        groups.setdefault((one.kind, one.name, one.detail), []).append(one)
    found = []
    for (kind, name, detail), mine in groups.items():
        total = sum(one.time_ns for one in mine)
        longest = sorted((one for one in mine if one.row != NONE), key=lambda one: (-one.time_ns, one.row))
        rows = list(dict.fromkeys(one.row for one in longest))[:_EVENTS]
        found.append(Contributor(kind, name, detail, total, len(mine), tree.trace.events(rows)))
    return tuple(sorted(found, key=lambda one: (-one.time_ns, one.kind, one.name, one.detail)))


def kinds_of(stretches: list[Stretch]) -> tuple[tuple[Kind, int], ...]:
    """Sum up the kinds, longest first."""
    sums: dict[Kind, int] = {}
    for one in stretches:
        sums[one.kind] = sums.get(one.kind, 0) + one.time_ns
    order = list(Kind)
    return tuple(sorted(sums.items(), key=lambda pair: (-pair[1], order.index(pair[0]))))
