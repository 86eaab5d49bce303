"""What the calls of scopes consist of: uses, each with its count and time per call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.model import Spread, Use, UseKind
from tracehunch.compare.paths import op_paths
from tracehunch.compare.placement import Calls, gpu_known
from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE, Link, Tree, work_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.compare.paths import Path
    from tracehunch.facts.model import Facts
    from tracehunch.kernels.identity import Identity

KEPT: Final = 64
"""Rows of evidence kept for a use."""

KINDS: Final[tuple[UseKind, ...]] = ("kernel", "memcpy", "memset", "op", "call")
_OP, _CALL = 3, 4


@dataclass(frozen=True, slots=True)
class Items:
    """Things that calls consist of, as columns."""

    row: Int64
    call: Int64  # in Calls; NONE: no scope owns it
    kind: Int64  # position in KINDS
    path: Int64  # number of the path
    time_ns: Int64
    paths: list[Path]

    def owned(self) -> Items:
        """Only what some call owns."""
        keep = self.call != NONE
        return Items(
            self.row[keep], self.call[keep], self.kind[keep], self.path[keep], self.time_ns[keep], self.paths
        )


def gpu_items(facts: Facts, calls: Calls) -> Items:
    """GPU activities, those outside the recorded window left out where the file has launches at all."""
    tree, trace = facts.tree, facts.tree.trace
    row = trace.gpu.row.astype(np.int64)
    call = calls.owners(calls.ownership.gpu, row.size)
    if tree.launches.size:
        call = np.where(tree.link[row] == Link.OUTSIDE_WINDOW, NONE, call)
    path, paths = op_paths(tree, tree.op[row].astype(np.int64))
    kind = trace.cat[row].astype(np.int64) - int(Cat.KERNEL)
    return Items(row, call, kind, path, _lengths(tree, row), paths).owned()


def host_items(facts: Facts, calls: Calls, *, with_runtime: bool) -> Items:
    """Ops, and with ``with_runtime`` calls of the CUDA or HIP runtime, with the time that is their own."""
    tree, trace = facts.tree, facts.tree.trace
    runtime = trace.rows(*LAUNCH_CATS) if with_runtime else np.zeros(0, dtype=np.int64)
    row = np.sort(np.concatenate([tree.ops, runtime]))
    layout = calls.ownership.layout(work_of(trace, row, tree.engine))
    call = calls.owners(layout, row.size)
    path, paths = op_paths(tree, row)
    kind = np.where(trace.cat[row] == Cat.CPU_OP, _OP, _CALL)
    return Items(row, call, kind, path, own_ns(tree, row), paths).owned()


def uses_of(facts: Facts, calls: Calls, items: Items) -> list[list[Use]]:
    """Return per scope its uses, longest first."""
    trace = facts.tree.trace
    known = gpu_known(facts, calls) if items.kind.size and items.kind.max() < _OP else None
    n_calls = calls.n_calls(known)
    group = _numbered(calls.scope[items.call], items.path, trace.name[items.row].astype(np.int64), items.kind)
    order = np.lexsort((items.row, items.call, group))
    bounds = np.flatnonzero(np.diff(group[order], prepend=-1, append=-1))
    identities = _identities(facts)
    found: list[list[Use]] = [[] for _ in range(calls.n_scopes)]
    for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        part = order[first:last]
        scope = int(calls.scope[items.call[part[0]]])
        found[scope].append(_use(facts, items, part, int(n_calls[scope]), identities))
    return [sorted(uses, key=lambda use: (-use.time.value, use.path, use.name)) for uses in found]


def _use(
    facts: Facts, items: Items, part: Int64, n_calls: int, identities: Mapping[tuple[str, str], Identity]
) -> Use:
    call = items.call[part]
    at = np.flatnonzero(np.diff(call, prepend=-1))
    counts = np.diff(np.append(at, call.size))
    times = np.add.reduceat(items.time_ns[part], at)
    name, kind = facts.tree.trace.name_of(int(items.row[part[0]])), KINDS[int(items.kind[part[0]])]
    return Use(
        name=name,
        kind=kind,
        path=items.paths[int(items.path[part[0]])],
        per_call=_per_call(counts, n_calls),
        time=_spread(times, n_calls),
        identity=identities.get((name, kind)),
        rows=tuple(items.row[part[:KEPT]].tolist()),
    )


def _per_call(counts: Int64, n_calls: int) -> int | float:
    """Lower median over the calls; the mean where the median call has none."""
    return int(_at(counts, n_calls, (n_calls - 1) // 2)) or round(int(counts.sum()) / n_calls, 3)


def _spread(times_ns: Int64, n_calls: int) -> Spread:
    low, high = _at(times_ns, n_calls, 0), _at(times_ns, n_calls, n_calls - 1)
    middle = (_at(times_ns, n_calls, (n_calls - 1) // 2) + _at(times_ns, n_calls, n_calls // 2)) / 2
    if not middle:
        middle = float(times_ns.sum()) / n_calls
    return Spread(round(middle / 1000, 3), round(low / 1000, 3), round(high / 1000, 3), n_calls)


def _at(values: Int64, n: int, position: int) -> int:
    """Return the value at a position of ``n`` in order, of which those that are not given are 0."""
    missing = max(n - values.size, 0)
    return 0 if position < missing else int(np.sort(values)[position - missing])


def _identities(facts: Facts) -> dict[tuple[str, str], Identity]:
    return {(use.name, use.kind): use.identity for scope in facts.scopes for use in scope.kernels}


def own_ns(tree: Tree, rows: Int64) -> Int64:
    """Durations of host rows (ascending) less what stands directly inside each and is among the rows, too."""
    lengths = _lengths(tree, rows)
    own = lengths.copy()
    parent = tree.parent[rows].astype(np.int64)
    above = np.where(parent == NONE, NONE, tree.op[np.maximum(parent, 0)])
    at = np.minimum(np.searchsorted(rows, above), max(rows.size - 1, 0))
    inside = np.flatnonzero((above != NONE) & (rows[at] == above)) if rows.size else at
    np.subtract.at(own, at[inside], lengths[inside])
    return np.maximum(own, 0)


def _lengths(tree: Tree, rows: Int64) -> Int64:
    lengths = tree.trace.dur_ns[rows]
    return np.where(lengths == UNKNOWN_NS, 0, lengths)


def _numbered(*columns: Int64) -> Int64:
    """One number for each combination of values."""
    number = np.zeros(columns[0].size, dtype=np.int64)
    for column in columns:
        _, code = np.unique(column, return_inverse=True)
        _, number = np.unique(number * (code.max(initial=0) + 1) + code.reshape(-1), return_inverse=True)
        number = number.reshape(-1)
    return number
