"""What one call of a scope spent more time on than the others, by op and event."""

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._scopes import durations_us
from tracehunch.facts.intervals import Cover
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree import NONE, Api, Tree, work_of
from tracehunch.tree.apis import waiting_rows
from tracehunch.tree.names import is_compiled_region, is_framework, names_that

_LOADING: Final = re.compile(
    r"Lazy Function Loading|Runtime Triggered Module Loading|\w*(?:Module|Library)Load"
)
_PROFILERS: Final = frozenset({"Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource"})
_EVIDENCE: Final = 64
_SHOWN: Final = 8
_SIMILAR: Final = 1.5
_LONG_US: Final = 500.0
"""Handles, plans and modules take longer than that; a call that is slow throughout has no such op."""
_MANY: Final = 5
"""So many events of loading and allocation say that the call used something new."""


@dataclass(frozen=True, slots=True)
class Excess:
    """How a call differs from the other calls of its scope."""

    more_us: float  # inside ops and calls, but for copies, waits and compilations
    told_us: float  # the part of it that is long in single ops or calls that had not run before
    did_more: bool  # the call ran many more ops than the others, so it does not compare
    profilers_us: float  # the profiler's own work meanwhile
    leading: list[tuple[str, float]]  # name and more time, most first
    loading: list[tuple[str, int, float]]  # events that say so: name, number, time
    rows: Int64  # of those events, and the longest row of the leading name


def excess_of(facts: Facts, scope: ScopeFacts, at: int) -> Excess:
    """Compare one call of a scope with the others."""
    tree = facts.tree
    trace = tree.trace
    rows = _doing(tree)
    own = own_us(tree)[rows]
    layout = tree.ownership.layout(work_of(trace, rows, tree.engine))
    first = scope.scope.first_call
    items = [layout.items_of(first + number)[0] for number in range(len(scope.scope.calls))]
    n_names = len(trace.names)
    by_name = np.array(
        [np.bincount(trace.name[rows[one]], weights=own[one], minlength=n_names) for one in items]
    )
    more = np.maximum(by_name[at] - np.median(np.delete(by_name, at, axis=0), axis=0), 0)
    order = np.argsort(-more, kind="stable")
    mine = rows[items[at]]
    span = scope.scope.calls[at].start_ns, scope.scope.calls[at].end_ns
    events = np.union1d(_overhead(trace, span), mine[_allocates(tree, mine)])
    events = events[~_profilers(trace)[events]]
    leading = mine[trace.name[mine] == order[0]]
    n_ops = np.array([int((trace.cat[rows[one]] == Cat.CPU_OP).sum()) for one in items])
    long = np.flatnonzero(more >= _LONG_US)
    told = sum(float(more[name]) for name in long if _is_new(trace, rows, mine[trace.name[mine] == name]))
    return Excess(
        more_us=float(more.sum()),
        told_us=told,
        did_more=events.size < _MANY and bool(n_ops[at] > _SIMILAR * np.median(np.delete(n_ops, at))),
        profilers_us=_profilers_us(trace, span),
        leading=[(trace.names[int(name)], float(more[name])) for name in order[:_SHOWN] if more[name] > 0],
        loading=_counted(trace, events),
        rows=np.union1d(events[:_EVIDENCE], leading[np.argsort(-durations_us(trace, leading))][:1]),
    )


def _is_new(trace: Trace, rows: Int64, called: Int64) -> bool:
    """Whether nothing of the name of these rows ran before the first of them."""
    if not called.size:
        return False
    same = rows[trace.name[rows] == trace.name[called[0]]]
    return bool(trace.start_ns[same].min() == trace.start_ns[called].min())


def own_us(tree: Tree) -> NDArray[np.float64]:
    """For each host row its duration less that of the rows directly inside it."""
    trace = tree.trace
    own = durations_us(trace, np.arange(len(trace)))
    inside = np.flatnonzero(tree.parent != NONE)
    found: NDArray[np.float64] = own - np.bincount(
        tree.parent[inside], weights=own[inside], minlength=len(trace)
    )
    return np.maximum(found, 0)


def _doing(tree: Tree) -> Int64:
    """Find ops and calls, but for copies, waits, compiled regions and what runs inside a compilation."""
    trace = tree.trace
    framework = names_that(trace, lambda name: is_framework(name) or is_compiled_region(name))[trace.name]
    compiling = names_that(trace, lambda name: "(dynamo_timed)" in name)
    wanted = np.isin(trace.cat, (Cat.CPU_OP, *LAUNCH_CATS)) & ~framework & (trace.start_ns != UNKNOWN_NS)
    wanted[waiting_rows(trace)] = False
    wanted &= tree.api != Api.MEMCPY  # it waits, too, if the host's memory is pageable
    rows = np.flatnonzero(wanted)
    if not compiling.any():
        return rows
    spans = np.flatnonzero(compiling[trace.name] & (trace.start_ns != UNKNOWN_NS))
    cover = Cover(trace.start_ns[spans], trace.end_ns()[spans])
    inside = cover.until(trace.start_ns[rows] + 1) - cover.until(trace.start_ns[rows])
    outside: Int64 = rows[inside == 0]
    return outside


def _overhead(trace: Trace, span: tuple[int, int]) -> Int64:
    starts = trace.start_ns
    return np.flatnonzero((trace.cat == Cat.OVERHEAD) & (starts >= span[0]) & (starts < span[1]))


def _profilers(trace: Trace) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = names_that(trace, _PROFILERS.__contains__)[trace.name]
    return found


def _profilers_us(trace: Trace, span: tuple[int, int]) -> float:
    rows = _overhead(trace, span)
    return float(durations_us(trace, rows[_profilers(trace)[rows]]).sum())


def _allocates(tree: Tree, rows: Int64) -> NDArray[np.bool_]:
    """Tell calls that allocate memory or load code."""
    loads = names_that(tree.trace, lambda name: _LOADING.match(name) is not None or "HostAlloc" in name)
    found: NDArray[np.bool_] = (tree.api[rows] == Api.ALLOC) | loads[tree.trace.name[rows]]
    return found


def _counted(trace: Trace, rows: Int64) -> list[tuple[str, int, float]]:
    """Count events by name, longest total first."""
    lengths = durations_us(trace, rows)
    names = trace.name[rows]
    found = [
        (trace.names[name], int((names == name).sum()), float(lengths[names == name].sum()))
        for name in np.unique(names).tolist()
    ]
    return sorted(found, key=lambda one: -one[2])
