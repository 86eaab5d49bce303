"""What a step would take if some of its work were free: the same graph, simulated with other weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.compare.critical.edges import EdgeKind
from tracehunch.compare.critical.model import Kind, WhatIf
from tracehunch.compare.critical.path import KIND_OF_PART, path_of
from tracehunch.compare.critical.segments import Part
from tracehunch.compare.critical.simulate import DROPPED
from tracehunch.compare.critical.steady import Steady
from tracehunch.tree import NONE
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracehunch.compare.critical.graph import Graph
    from tracehunch.compare.critical.path import Stretch, Stretches
    from tracehunch.compare.critical.scope import Target
    from tracehunch.compare.critical.simulate import Run, Simulator, Walk
    from tracehunch.trace.model import Int64

Bool = NDArray[np.bool_]

_HOST: Final = (Part.OUTSIDE, Part.OP, Part.LAUNCH, Part.CALL, Part.LOADING, Part.PROFILER, Part.WAIT)
_OF_PARTS: Final[tuple[tuple[str, str, tuple[Part, ...]], ...]] = (
    ("launch-calls", "launch calls take no time", (Part.LAUNCH,)),
    ("ops", "ops take no host time", (Part.OP,)),
    ("outside", "code outside ops takes no time", (Part.OUTSIDE,)),
    ("loading", "data is there at once", (Part.LOADING,)),
    ("profiler", "no profiler overhead", (Part.PROFILER,)),
    ("host", "the host is infinitely fast", _HOST),
)
_KIND_OF_EDGE: Final = {
    EdgeKind.LAUNCH: Kind.LATENCY,
    EdgeKind.STREAM: Kind.DEVICE,
    EdgeKind.EVENT: Kind.DEVICE,
}
_OPS: Final = 3
_SEVERAL: Final = 2


@dataclass(frozen=True, slots=True)
class _Case:
    id: str
    title: str
    weight_ns: Int64
    about_host: bool  # so that without the launches nobody can tell
    free: tuple[Part, ...] = ()


class WhatIfs:
    """Asks one graph all questions."""

    def __init__(
        self, graph: Graph, simulator: Simulator, target: Target, stretches: Stretches, length_ns: int
    ) -> None:
        self._graph, self._simulator, self._target, self._stretches = graph, simulator, target, stretches
        self._length_ns = length_ns
        self._steady = Steady(graph, target, simulator.run(graph.edges.weight_ns))
        self.averaged_over = 0  # steps, once an answer had to be theirs
        edges, gpu = graph.edges, graph.gpu
        self._work = np.flatnonzero(edges.kind == EdgeKind.WORK)
        self._kind = [stretches.kind_of(int(row)) for row in edges.row[self._work].tolist()]
        owned = edges.owner_ns[self._work] >= target.begin_ns
        if target.next_ns is not None:
            owned &= edges.owner_ns[self._work] < target.next_ns
        self._own_kinds = {kind for kind, mine in zip(self._kind, owned.tolist(), strict=True) if mine}
        linked = np.count_nonzero(gpu.launch != NONE)
        unknown = stretches.without_launch(gpu.row)
        self._linked = linked >= unknown
        self._lack = f"the trace lacks the launches of {unknown:,} of {unknown + linked:,} GPU activities"

    def answers(self, path: Iterable[Stretch]) -> tuple[WhatIf, ...]:
        """Return all that apply, the largest gain first."""
        found = [self._answer(case) for case in self._cases(list(path))]
        return tuple(sorted(found, key=lambda one: (one.after_ns is None, one.after_ns or 0)))

    def _answer(self, case: _Case) -> WhatIf:
        if case.about_host and not self._linked:
            return WhatIf(case.id, case.title, None, why=self._lack)
        run = self._simulator.run(case.weight_ns)
        walk = path_of(self._graph, self._simulator, run, self._target)
        length = walk.end_ns[0] - walk.start_ns[-1] if walk.edge else 0
        return WhatIf(case.id, case.title, self._told(run, length), self._mostly(walk, case.free))

    def _told(self, run: Run, length_ns: int) -> int:
        """Return a step's new length: its path's, unless that rests on where steps happen to overlap."""
        if length_ns <= self._length_ns and self._steady.is_border_sharp(self._length_ns):
            return length_ns
        if self._steady.steps < _SEVERAL:
            return min(length_ns, self._length_ns)
        self.averaged_over = self._steady.steps
        typical = round(self._length_ns * self._steady.typical_change(run))
        return typical if length_ns > self._length_ns else max(typical, length_ns)

    def _cases(self, path: list[Stretch]) -> Iterator[_Case]:
        edges = self._graph.edges
        for number, (name, title, parts) in enumerate(_OF_PARTS):
            freed = edges.parts[:, parts].sum(axis=1)
            last = number == len(_OF_PARTS) - 1  # only the GPU can then bound the step
            if freed.any() and not (last and not len(self._graph.gpu)):
                yield _Case(name, title, edges.weight_ns - freed, about_host=True, free=parts)
        if any(wait.removable for wait in self._graph.host.waits):
            yield _Case("waits", "the host waits for nothing", self._without_waits(), about_host=True)
        if len(self._graph.gpu):
            mine = np.array([kind is not Kind.COMMUNICATION for kind in self._kind])  # other ranks stay
            weight = self._without_calls(self._without_work(mine), mine)
            yield _Case("gpu", "the GPU is infinitely fast", weight, about_host=True)
        yield from self._of_work(path)

    def _of_work(self, path: list[Stretch]) -> Iterator[_Case]:
        kinds = (
            ("copies", "copies and memsets take no time", (Kind.COPY, Kind.MEMSET)),
            ("communication", "communication takes no time", (Kind.COMMUNICATION,)),
        )
        for name, title, of in kinds:
            if self._own_kinds.intersection(of):
                chosen = np.array([kind in of for kind in self._kind])
                weight = self._without_work(chosen)
                yield _Case(name, title, self._without_calls(weight, chosen), about_host=False)
        for op in _leading_ops(path):
            chosen = np.array([self._launched_by(row) == op for row in self._graph.edges.row[self._work]])
            title = f"kernels of {printable(op)} take no time"
            yield _Case(f"kernels:{op}", title, self._without_work(chosen), about_host=False)

    def _launched_by(self, row: int) -> str:
        return self._stretches.op_of(int(row))

    def _without_work(self, chosen: Bool) -> Int64:
        weight = self._graph.edges.weight_ns.copy()
        weight[self._work[chosen]] = 0
        return weight

    def _without_calls(self, weight: Int64, chosen: Bool) -> Int64:
        """Leave out what calls that see their work through cost because of it, such as staging a copy."""
        edges, waits = self._graph.edges, self._graph.host.waits
        through = np.array([wait.row for wait in waits if wait.sees_through], dtype=np.int64)
        tree_launch = self._stretches.launch_of(edges.row[self._work[chosen]])
        calls = through[np.isin(through, tree_launch)]
        own = np.isin(edges.kind, (EdgeKind.HOST, EdgeKind.RETURN)) & np.isin(edges.row, calls)
        weight[own] -= edges.parts[own, Part.WAIT]
        rows = edges.row[self._work[chosen]][np.isin(tree_launch, calls)]
        started = (edges.kind == EdgeKind.LAUNCH) & np.isin(edges.row, rows)
        weight[started] = np.minimum(weight[started], self._graph.usual.latency_ns)
        return weight

    def _without_waits(self) -> Int64:
        edges = self._graph.edges
        weight = edges.weight_ns.copy()
        removable = [wait.row for wait in self._graph.host.waits if wait.removable]
        gone = (edges.kind == EdgeKind.RETURN) & np.isin(edges.row, removable)
        weight[gone] = DROPPED
        calls = [wait.row for wait in self._graph.host.waits if wait.removable and not wait.sees_through]
        own = (edges.kind == EdgeKind.HOST) & np.isin(edges.row, calls)
        weight[own] -= edges.parts[own, Part.WAIT]
        return weight

    def _mostly(self, walk: Walk, free: tuple[Part, ...]) -> Kind | None:
        """Tell the kind that a path consists of most."""
        edges = self._graph.edges
        sums: dict[Kind, int] = {}
        chosen = np.array(walk.edge, dtype=np.int64)
        host = edges.parts[chosen].sum(axis=0)
        for part in set(Part).difference(free):
            sums[KIND_OF_PART[part]] = sums.get(KIND_OF_PART[part], 0) + int(host[part])
        kinds = dict(zip(self._work.tolist(), self._kind, strict=True))
        for edge, start, end in zip(walk.edge, walk.start_ns, walk.end_ns, strict=True):
            kind = kinds.get(edge, _KIND_OF_EDGE.get(EdgeKind(int(edges.kind[edge]))))
            if kind is not None:
                sums[kind] = sums.get(kind, 0) + end - start
        order = list(Kind)
        most = max(sums, key=lambda kind: (sums[kind], -order.index(kind)))
        return most if sums[most] else None


def _leading_ops(path: list[Stretch]) -> list[str]:
    """Ops whose kernels take most of the path."""
    sums: dict[str, int] = {}
    for one in path:
        if one.kind == Kind.KERNEL and one.detail:
            sums[one.name] = sums.get(one.name, 0) + one.time_ns
    return sorted(sums, key=lambda op: (-sums[op], op))[:_OPS]
