"""Where a finding is reported: once, in the most specific scope that owns its activities."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import UNKNOWN_NS, Int32, Int64, Trace
from tracehunch.tree import NONE, Ownership, Tree, work_of
from tracehunch.tree.ownership import Spans

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
        chosen, kinds = np.asarray(rows, dtype=np.int64), np.asarray(keys, dtype=np.int64)
        owned = self.scope[chosen] != NONE
        chosen, kinds = chosen[owned], kinds[owned]
        pairs = np.stack([self.scope[chosen].astype(np.int64), kinds])
        for index, key in np.unique(pairs, axis=1).T.tolist():
            yield self.facts.scopes[index], key, chosen[(pairs[0] == index) & (pairs[1] == key)]

    def by_scope(self, rows: Any) -> Iterator[tuple[ScopeFacts, Int64]]:
        """Group rows by scope."""
        for scope, _, chosen in self.groups(rows, np.zeros(len(rows), dtype=np.int64)):
            yield scope, chosen

    def per_call_us(self, scope: ScopeFacts, rows: Any) -> float:
        """Sum the durations of the rows and average over the calls of their scope."""
        return float(durations_us(self.facts.tree.trace, rows).sum()) / len(scope.scope.calls)


def place(facts: Facts) -> Placement:
    """Assign GPU activities to the innermost annotation around their launch, the steps, or the whole."""
    owned, scopes = _specific_last(facts)
    pairs = owned.gpu.pairs
    return _placed(facts, scopes[pairs.call], facts.tree.trace.gpu.row[pairs.item])


def place_ops(facts: Facts) -> Placement:
    """Assign ops to the innermost annotation around them, the steps, or the whole."""
    owned, scopes = _specific_last(facts)
    pairs = owned.ops.pairs
    return _placed(facts, scopes[pairs.call], facts.tree.ops[pairs.item])


def place_rows(facts: Facts, rows: Any) -> Placement:
    """Assign any host rows, such as calls of the runtime, as ``place_ops`` assigns ops."""
    tree, chosen = facts.tree, np.asarray(rows, dtype=np.int64)
    owned, scopes = _specific_last(facts)
    pairs = owned.layout(work_of(tree.trace, chosen, tree.engine)).pairs
    return _placed(facts, scopes[pairs.call], chosen[pairs.item])


def durations_us(trace: Trace, rows: Any) -> NDArray[np.float64]:
    """Durations in microseconds; 0 where the file does not give one."""
    lengths = trace.dur_ns[np.asarray(rows, dtype=np.int64)]
    return np.where(lengths == UNKNOWN_NS, 0, lengths) / 1e3


def total_us(facts: Facts, scope: ScopeFacts) -> float:
    """Sum what all calls of a scope own: GPU activities, in a trace without any the time inside ops.

    Each op counts with the time that is its own, so that no part of the sum exceeds it.
    """
    tree, calls = facts.tree, scope.scope
    mine = slice(calls.first_call, calls.first_call + len(calls.calls))
    rows = tree.trace.gpu.row
    layout, lengths = (
        (tree.ownership.gpu, np.rint(durations_us(tree.trace, rows) * 1e3))
        if len(rows)
        else (tree.ownership.ops, _own_ns(tree))
    )
    return float(layout.sums(lengths.astype(np.int64))[0][mine].sum()) / 1e3


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
    starts = np.array([call.start_ns for call in scope.scope.calls], dtype=np.int64)
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
            mine = slice(scope.scope.first_call, scope.scope.first_call + len(scope.scope.calls))
            level[mine], scope_of[mine] = _FROM_GENERAL.index(scope.scope.kind), position
    order = np.lexsort((spans.start_ns - spans.end_ns, level))
    chosen = order[level[order] != NONE]
    columns = (spans.row, spans.thread, spans.process, spans.start_ns, spans.end_ns)
    return facts.tree.ownership.of(Spans(*(column[chosen] for column in columns))), scope_of[chosen]


def _placed(facts: Facts, scopes: Int64, rows: Any) -> Placement:
    """(scope, row) pairs, the most specific scope last, to the scope of each row."""
    owner = np.full(len(facts.tree.trace), NONE, dtype=np.int32)
    owner[rows] = scopes
    return Placement(facts, owner)
