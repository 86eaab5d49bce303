"""The scopes of a trace: annotations, profiler steps, modules, and the whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree.host import Host
from tracehunch.tree.model import Call, Scope, ScopeKind
from tracehunch.tree.modules import module_calls
from tracehunch.tree.names import STEP, is_compiled_region, is_framework, names_that
from tracehunch.tree.nesting import NONE
from tracehunch.tree.ownership import Ownership, Spans
from tracehunch.tree.window import Window

WHOLE: Final = "whole"
_ORDER: Final[tuple[ScopeKind, ...]] = ("annotation", "step", "whole", "framework", "module")


@dataclass(frozen=True, slots=True)
class Plan:
    """A scope before its calls own anything: rows in order of time."""

    name: str
    kind: ScopeKind
    rows: Int64


@dataclass(frozen=True, slots=True)
class Owned:
    """What calls are made of: the rows that the items of an ownership stand for."""

    ownership: Ownership
    launches: Int64
    ops: Int64
    gpu: Int64

    def call(self, number: int) -> Call:
        """One call of the ownership."""
        spans = self.ownership.spans
        launches, own_launches = self.ownership.launches.items_of(number)
        gpu, own_gpu = self.ownership.gpu.items_of(number)
        ops, own_ops = self.ownership.ops.items_of(number)
        return Call(
            row=int(spans.row[number]),
            thread=int(spans.thread[number]),
            start_ns=int(spans.start_ns[number]),
            end_ns=int(spans.end_ns[number]),
            launches=self.launches[launches],
            own_launches=self.launches[launches[own_launches]],
            gpu=self.gpu[gpu],
            own_gpu=self.gpu[gpu[own_gpu]],
            ops=self.ops[ops[own_ops]],
        )


class Calls(Sequence[Call]):
    """The calls of one scope, made when asked for."""

    def __init__(self, owned: Owned, first: int, n: int) -> None:
        self._owned, self._first, self._n = owned, first, n

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | Sequence[Call]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(self._n)))
        if not -self._n <= index < self._n:
            raise IndexError(index)
        return self._owned.call(self._first + index % self._n)


def plan_scopes(trace: Trace, host: Host) -> list[Plan]:
    """All scopes, in the order in which reports show them."""
    timed = (trace.start_ns != UNKNOWN_NS) & (trace.dur_ns != UNKNOWN_NS)
    plans = [
        *_annotations(trace, host, timed),
        *_steps(trace, host, timed),
        Plan(WHOLE, "whole", np.array([NONE], dtype=np.int64)),
        *_modules(trace),
    ]
    return sorted(plans, key=lambda plan: _ORDER.index(plan.kind))


def plan_rows(trace: Trace, name: str, rows: Int64) -> Plan:
    """Any host rows as a scope."""
    timed = rows[(trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] != UNKNOWN_NS)]
    parts = _outermost_by(trace, timed, np.zeros(timed.size, dtype=np.int64))
    return Plan(name, "annotation", parts[0] if parts else timed)


def _annotations(trace: Trace, host: Host, timed: NDArray[np.bool_]) -> list[Plan]:
    regions = names_that(trace, is_compiled_region)
    annotated = (trace.cat == Cat.USER_ANNOTATION) & ~host.steps
    if regions.any():
        annotated |= host.ops & regions[trace.name]
    rows = np.flatnonzero(annotated & timed)
    plans = []
    for chosen in _outermost_by(trace, rows, trace.name[rows].astype(np.int64)):
        name = trace.name_of(int(chosen[0]))
        plans.append(Plan(name, "framework" if is_framework(name) else "annotation", chosen))
    return plans


def _steps(trace: Trace, host: Host, timed: NDArray[np.bool_]) -> list[Plan]:
    rows = np.flatnonzero(host.steps & timed)
    return [
        Plan(STEP, "step", found) for found in _outermost_by(trace, rows, np.zeros(rows.size, dtype=np.int64))
    ]


def _modules(trace: Trace) -> list[Plan]:
    rows, paths = module_calls(trace)
    numbers: dict[str, int] = {}
    keys = np.fromiter(
        (numbers.setdefault(path, len(numbers)) for path in paths), dtype=np.int64, count=len(paths)
    )
    names = list(numbers)
    by_row = dict(zip(rows.tolist(), keys.tolist(), strict=True))
    return [Plan(names[by_row[int(found[0])]], "module", found) for found in _outermost_by(trace, rows, keys)]


def _outermost_by(trace: Trace, rows: Int64, key: Int64) -> list[Int64]:
    """Rows by key, in order of first start, without what starts inside one of its key and thread."""
    if not rows.size:
        return []
    order = np.lexsort((-trace.dur_ns[rows], trace.start_ns[rows], trace.thread[rows], key))
    rows, key = rows[order], key[order]
    start, end = trace.start_ns[rows], trace.end_ns()[rows]
    group = np.cumsum(np.r_[0, (np.diff(key) != 0) | (np.diff(trace.thread[rows]) != 0)])
    kept = ~_inside_earlier(group, start, end)
    rows, key = rows[kept], key[kept]
    order = np.lexsort((trace.start_ns[rows], key))
    rows, key = rows[order], key[order]
    parts = np.split(rows, np.flatnonzero(np.diff(key)) + 1)
    return sorted(parts, key=lambda part: (int(trace.start_ns[part[0]]), int(part[0])))


def _inside_earlier(group: Int64, start: Int64, end: Int64) -> NDArray[np.bool_]:
    """Spans, sorted by (group, start), that start before an earlier one of their group has ended."""
    ends = np.unique(end)
    code = np.searchsorted(ends, end) + group * (
        ends.size + 1
    )  # so that a later group is above every earlier one
    reach = ends[np.minimum(np.maximum.accumulate(code) % (ends.size + 1), ends.size - 1)]
    inside = np.zeros(start.size, dtype=bool)
    inside[1:] = (group[1:] == group[:-1]) & (start[1:] < reach[:-1])
    return inside


def spans_of(trace: Trace, plans: Sequence[Plan], window: Window) -> Spans:
    """Make columns of the calls of all scopes."""
    rows = np.concatenate([plan.rows for plan in plans])
    whole = rows == NONE
    safe = np.where(whole, 0, rows)
    if not len(trace):
        none = np.full(rows.size, NONE, dtype=np.int64)
        return Spans(rows, none, none, np.zeros_like(rows), np.zeros_like(rows))
    return Spans(
        row=rows,
        thread=np.where(whole, NONE, trace.thread[safe]).astype(np.int64),
        process=np.where(whole, NONE, trace.process[safe]).astype(np.int64),
        start_ns=np.where(whole, window.start_ns, trace.start_ns[safe]),
        end_ns=np.where(whole, window.end_ns, trace.start_ns[safe] + trace.dur_ns[safe]),
    )


def scopes_of(plans: Sequence[Plan], owned: Owned) -> tuple[Scope, ...]:
    """Make the scopes with their calls."""
    scopes, first = [], 0
    for plan in plans:
        scopes.append(Scope(plan.name, plan.kind, Calls(owned, first, plan.rows.size), first))
        first += plan.rows.size
    return tuple(scopes)
