"""Where a finding is reported: once, in the most specific scope that owns its activities."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._once import once
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import UNKNOWN_NS, Int32, Int64, Trace
from tracehunch.tree import NONE, Ownership, Tree, work_of
from tracehunch.tree.keys import distinct, groups_of, packed
from tracehunch.tree.ownership import Layout, Spans

_FROM_GENERAL: Final = (
    "whole",
    "step",
    "annotation",
)  # modules and framework annotations would scatter a finding


@dataclass(frozen=True, slots=True)
class Placement:
    """For each row of the trace the scope (index into ``facts.scopes``) that its findings are reported in."""

    facts: Facts
    scope: Int32  # NONE where no scope owns the row

    def groups(self, rows: Any, keys: Any) -> Iterator[tuple[ScopeFacts, int, Int64]]:
        """Group rows by scope and an integer key, in the order of scopes; leave out what no scope owns."""
        chosen = np.asarray(rows, dtype=np.int64)
        for scope, key, at in self.positions(chosen, keys):
            yield scope, key, chosen[at]

    def positions(self, rows: Any, keys: Any = None) -> Iterator[tuple[ScopeFacts, int, Int64]]:
        """Do as ``groups``, but return where in ``rows`` those of a group are."""
        scope = self.scope[np.asarray(rows, dtype=np.int64)]
        kinds = np.zeros(scope.size, dtype=np.int64) if keys is None else np.asarray(keys, dtype=np.int64)
        owned = np.flatnonzero(scope != NONE)
        for group in groups_of(packed(scope[owned], kinds[owned])):
            at = owned[group]
            yield self.facts.scopes[scope[at[0]]], int(kinds[at[0]]), at

    def by_scope(self, rows: Any) -> Iterator[tuple[ScopeFacts, Int64]]:
        """Group rows by scope."""
        for scope, _, chosen in self.groups(rows, np.zeros(len(rows), dtype=np.int64)):
            yield scope, chosen

    def per_call_us(self, scope: ScopeFacts, rows: Any) -> float:
        """Sum the durations of the rows and average over the calls of their scope."""
        return float(durations_us(self.facts.tree.trace, rows).sum()) / len(scope.scope.calls)


def place(facts: Facts) -> Placement:
    """Assign GPU activities to the innermost annotation around their launch, the steps, or the whole."""
    return Placement(facts, _scopes_of_gpu(facts))


def place_ops(facts: Facts) -> Placement:
    """Assign ops to the innermost annotation around them, the steps, or the whole."""
    return Placement(facts, _scopes_of_ops(facts))


def place_rows(facts: Facts, rows: Any) -> Placement:
    """Assign any host rows, such as calls of the runtime, as ``place_ops`` assigns ops."""
    tree, chosen = facts.tree, np.asarray(rows, dtype=np.int64)
    owned, scopes = _specific_last(facts)
    layout = owned.layout(work_of(tree.trace, chosen, tree.engine))
    return Placement(facts, _placed(facts, layout, scopes, chosen))


def spans_ns(facts: Facts, scope: ScopeFacts) -> tuple[Int64, Int64]:
    """Return the start and the end of each call of a scope."""
    spans, mine = facts.tree.ownership.spans, _calls(scope)
    return spans.start_ns[mine], spans.end_ns[mine]


def gpu_rows(facts: Facts, scope: ScopeFacts) -> Int64:
    """Return the GPU rows, ascending, that the calls of a scope own."""
    pairs, mine = facts.tree.ownership.gpu.pairs, _calls(scope)
    items = pairs.item[pairs.first[mine.start] : pairs.first[mine.stop]]
    return distinct(facts.tree.trace.gpu.row[items])


def durations_us(trace: Trace, rows: Any) -> NDArray[np.float64]:
    """Durations in microseconds; 0 where the file does not give one."""
    lengths = trace.dur_ns[np.asarray(rows, dtype=np.int64)]
    return np.where(lengths == UNKNOWN_NS, 0, lengths) / 1e3


def total_us(facts: Facts, scope: ScopeFacts) -> float:
    """Sum what all calls of a scope own: GPU activities, in a trace without any the time inside ops.

    Each op counts with the time that is its own, so that no part of the sum exceeds it.
    """
    return float(_owned_ns(facts)[_calls(scope)].sum()) / 1e3


def total_by_call_us(facts: Facts, scope: ScopeFacts) -> NDArray[np.float64]:
    """Sum, as ``total_us`` does, what each call of a scope owns."""
    return _owned_ns(facts)[_calls(scope)] / 1e3


@once
def _owned_ns(facts: Facts) -> Int64:
    """Sum what each call of ``Tree.ownership`` owns, as ``total_us`` does."""
    tree = facts.tree
    rows = tree.trace.gpu.row
    layout, lengths = (
        (tree.ownership.gpu, np.rint(durations_us(tree.trace, rows) * 1e3))
        if len(rows)
        else (tree.ownership.ops, _own_ns(tree))
    )
    return layout.sums(lengths.astype(np.int64))[0]


def by_call_us(facts: Facts, scope: ScopeFacts, rows: Any) -> NDArray[np.float64]:
    """Sum the durations of rows in each call of their scope: by when they, or their launches, start."""
    return sums_by_call(facts, scope, rows, durations_us(facts.tree.trace, rows))


def sums_by_call(facts: Facts, scope: ScopeFacts, rows: Any, values: Any) -> NDArray[np.float64]:
    """Sum what rows are worth in each call of their scope: by when they, or their launches, start."""
    at = call_of(facts, scope, rows)
    return np.bincount(at, weights=values, minlength=len(scope.scope.calls)).astype(np.float64)


def call_of(facts: Facts, scope: ScopeFacts, rows: Any) -> Int64:
    """Return for each row the number of the call of its scope in which it, or its launch, starts."""
    tree = facts.tree
    starts, _ = spans_ns(facts, scope)
    order = np.argsort(starts, kind="stable")
    chosen = np.asarray(rows, dtype=np.int64)
    host = np.where(tree.launch[chosen] == NONE, chosen, tree.launch[chosen])
    at = np.searchsorted(starts[order], tree.trace.start_ns[host], side="right") - 1
    found: Int64 = order[np.maximum(at, 0)]
    return found


def _own_ns(tree: Tree) -> NDArray[np.float64]:
    """For each op its duration less that of the ops directly inside it."""
    trace, ops = tree.trace, tree.ops
    lengths = np.zeros(len(trace))
    lengths[ops] = durations_us(trace, ops) * 1e3
    own = lengths.copy()
    inside = ops[tree.parent[ops] != NONE]
    above = tree.op[tree.parent[inside]]
    np.subtract.at(own, above[above != NONE], lengths[inside[above != NONE]])
    found: NDArray[np.float64] = np.maximum(np.rint(own[ops]), 0)
    return found


def _specific_last(facts: Facts) -> tuple[Ownership, Int64]:
    """Order the calls that findings go to from general to specific, with the scope of each."""
    spans = facts.tree.ownership.spans
    level, scope_of = np.full((2, len(spans)), NONE, dtype=np.int64)
    for position, scope in enumerate(facts.scopes):
        if scope.scope.kind in _FROM_GENERAL:
            mine = _calls(scope)
            level[mine], scope_of[mine] = _FROM_GENERAL.index(scope.scope.kind), position
    order = np.lexsort((spans.start_ns - spans.end_ns, level))
    chosen = order[level[order] != NONE]
    columns = (spans.row, spans.thread, spans.process, spans.start_ns, spans.end_ns)
    return facts.tree.ownership.of(Spans(*(column[chosen] for column in columns))), scope_of[chosen]


def _calls(scope: ScopeFacts) -> slice:
    """Where the calls of a scope are in ``Tree.ownership``."""
    return slice(scope.scope.first_call, scope.scope.first_call + len(scope.scope.calls))


@once
def _scopes_of_gpu(facts: Facts) -> Int32:
    owned, scopes = _specific_last(facts)
    return _placed(facts, owned.gpu, scopes, facts.tree.trace.gpu.row)


@once
def _scopes_of_ops(facts: Facts) -> Int32:
    owned, scopes = _specific_last(facts)
    return _placed(facts, owned.ops, scopes, facts.tree.ops)


def _placed(facts: Facts, layout: Layout, scopes: Int64, rows: Any) -> Int32:
    """Return for each row of the trace the scope of the most specific call that owns it."""
    owner = np.full(len(facts.tree.trace), NONE, dtype=np.int32)
    last = layout.last_call()
    owner[rows[last != NONE]] = scopes[last[last != NONE]]
    return owner
