"""What a step would take if some of its work were free: the same graph, simulated with other weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.critical.edges import EdgeKind
from tracehunch.compare.critical.model import Kind, WhatIf
from tracehunch.compare.critical.path import KIND_OF_PART, path_of
from tracehunch.compare.critical.segments import Part
from tracehunch.compare.critical.simulate import DROPPED
from tracehunch.tree import NONE
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tracehunch.compare.critical.graph import Graph
    from tracehunch.compare.critical.path import Stretch, Stretches
    from tracehunch.compare.critical.scope import Target
    from tracehunch.compare.critical.simulate import Simulator, Walk
    from tracehunch.trace.model import Int64

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


@dataclass(frozen=True, slots=True)
class _Case:
    id: str
    title: str
    weight_ns: Int64
    about_host: bool  # so that without the launches nobody can tell
    free: tuple[Part, ...] = ()


class WhatIfs:
    """Asks one graph all questions."""

    def __init__(self, graph: Graph, simulator: Simulator, target: Target, stretches: Stretches) -> None:
        self._graph, self._simulator, self._target, self._stretches = graph, simulator, target, stretches
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
        return WhatIf(case.id, case.title, length, self._mostly(walk, case.free))

    def _cases(self, path: list[Stretch]) -> Iterator[_Case]:
        edges = self._graph.edges
        for number, (name, title, parts) in enumerate(_OF_PARTS):
            freed = edges.parts[:, parts].sum(axis=1)
            last = number == len(_OF_PARTS) - 1  # only the GPU can then bound the step
            if freed.any() and not (last and not len(self._graph.gpu)):
                yield _Case(name, title, edges.weight_ns - freed, about_host=True, free=parts)
        if (edges.kind == EdgeKind.RETURN).any():
            yield _Case("waits", "the host waits for nothing", self._without_waits(), about_host=True)
        if len(self._graph.gpu):
            every = np.ones(self._work.size, dtype=bool)
            yield _Case("gpu", "the GPU is infinitely fast", self._without_work(every), about_host=True)
        yield from self._of_work(path)

    def _of_work(self, path: list[Stretch]) -> Iterator[_Case]:
        kinds = (
            ("copies", "copies and memsets take no time", (Kind.COPY, Kind.MEMSET)),
            ("communication", "communication takes no time", (Kind.COMMUNICATION,)),
        )
        for name, title, of in kinds:
            if self._own_kinds.intersection(of):
                chosen = np.array([kind in of for kind in self._kind])
                yield _Case(name, title, self._without_work(chosen), about_host=False)
        for op in _leading_ops(path):
            chosen = np.array([self._launched_by(row) == op for row in self._graph.edges.row[self._work]])
            title = f"kernels of {printable(op)} take no time"
            yield _Case(f"kernels:{op}", title, self._without_work(chosen), about_host=False)

    def _launched_by(self, row: int) -> str:
        return self._stretches.op_of(int(row))

    def _without_work(self, chosen: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Int64:
        weight = self._graph.edges.weight_ns.copy()
        weight[self._work[chosen]] = 0
        return weight

    def _without_waits(self) -> Int64:
        edges = self._graph.edges
        weight = edges.weight_ns.copy()
        removable = [wait.row for wait in self._graph.waits if wait.removable]
        gone = (edges.kind == EdgeKind.RETURN) & np.isin(edges.row, removable)
        weight[gone] = DROPPED
        calls = [wait.row for wait in self._graph.waits if wait.removable and not wait.is_copy]
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
