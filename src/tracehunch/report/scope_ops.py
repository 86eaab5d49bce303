"""The ops of a scope that put nothing on a GPU: how often each ran in a call, and how long on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from tracehunch.facts.model import ScopeFacts
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree


@dataclass(frozen=True, slots=True)
class OpUse:
    """One op within a scope: medians over the scope's calls (of counts the lower), microseconds.

    ``self_us`` is without the ops inside it, ``total_us`` with them; an op inside one of its own name adds
    nothing to the latter.
    """

    name: str
    per_call: int
    self_us: float
    total_us: float


def ops_of(scope: ScopeFacts, tree: Tree) -> list[OpUse]:
    """Return the ops of a scope by the time in themselves, longest first; those of its own thread."""
    calls = [call.ops.astype(np.int64) for call in scope.scope.calls]
    rows = np.concatenate(calls) if calls else np.zeros(0, dtype=np.int64)
    if not rows.size:
        return []
    call = np.repeat(np.arange(len(calls)), [one.size for one in calls])
    names, code = np.unique(tree.trace.name[rows], return_inverse=True)
    n_calls = len(calls)

    def medians(values: Int64) -> Int64:
        sums = np.zeros((names.size, n_calls), dtype=np.int64)
        np.add.at(sums, (code.reshape(-1), call), values)
        return np.sort(sums, axis=1)[:, (n_calls - 1) // 2 : n_calls // 2 + 1]

    total, inner = _durations(tree, rows), _inside_own_name(tree, rows)
    counts = medians(np.ones_like(rows))[:, 0]
    self_us = medians(total - _inside(tree, rows, total)).mean(axis=1) / 1e3
    total_us = medians(np.where(inner, 0, total)).mean(axis=1) / 1e3
    uses = [
        OpUse(tree.trace.names[int(name)], int(n), round(float(own), 3), round(float(all_), 3))
        for name, n, own, all_ in zip(names, counts, self_us, total_us, strict=True)
    ]
    return sorted(
        (use for use in uses if use.per_call or use.total_us), key=lambda use: (-use.self_us, use.name)
    )


def _durations(tree: Tree, rows: Int64) -> Int64:
    durations = tree.trace.dur_ns[rows]
    return np.where(durations == UNKNOWN_NS, 0, durations)


def _op_above(tree: Tree, rows: Int64) -> Int64:
    """Innermost op around each op; NONE at the top."""
    parent = tree.parent[rows].astype(np.int64)
    above: Int64 = np.where(parent == NONE, NONE, tree.op[np.maximum(parent, 0)])
    return above


def _inside(tree: Tree, rows: Int64, durations: Int64) -> Int64:
    """Time of the ops directly inside each of the rows, as far as these are among the rows."""
    order = np.argsort(rows)
    above = _op_above(tree, rows)
    at = np.minimum(np.searchsorted(rows[order], above), rows.size - 1)
    there = rows[order][at] == above
    spent = np.zeros(rows.size, dtype=np.int64)
    np.add.at(spent, order[at[there]], durations[there])
    return spent


def _inside_own_name(tree: Tree, rows: Int64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether an op stands inside an op of its own name."""
    name = tree.trace.name
    found = np.zeros(rows.size, dtype=np.bool_)
    at = _op_above(tree, rows)
    while (at != NONE).any():
        there = at != NONE
        found |= there & (name[np.maximum(at, 0)] == name[rows])
        at = np.where(there, _op_above(tree, np.maximum(at, 0)), NONE)
    return found
