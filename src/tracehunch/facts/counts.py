"""How many: activities, ops, launches, waits, allocations."""

import numpy as np

from tracehunch.facts.activities import KERNEL, MEMSET
from tracehunch.facts.column import Column, Words
from tracehunch.facts.context import Context
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Api, Tree, work_of
from tracehunch.tree.apis import waiting_rows
from tracehunch.tree.keys import numbered


def columns(context: Context) -> list[Column]:
    """Return the counts per call."""
    found = [*_activities(context), *_ops(context)]
    if context.has_calls:
        found += [
            _count(context, "launches", context.tree.launches),
            _count(context, "syncs", waits(context)),
            _count(context, "allocations", np.flatnonzero(np.isin(context.tree.api, (Api.ALLOC, Api.FREE)))),
        ]
    return found


def words(context: Context) -> list[Words]:
    """Return the calls that launch, by scope, most frequent first."""
    tree = context.tree
    rows = tree.launches
    if not rows.size:
        return []
    launched = numbered(context.trace.name[rows])
    names = launched.keys
    per_scope = np.zeros((len(context.scopes), names.size), dtype=np.int64)
    for number in range(names.size):
        per_call = context.ownership.launches.sums(launched.number == number)[0]
        per_scope[:, number] = np.bincount(
            context.scope_of_call, weights=per_call, minlength=len(context.scopes)
        )
    values: dict[int, str | tuple[str, ...]] = {}
    for scope in np.flatnonzero(per_scope.sum(axis=1)).tolist():
        order = sorted(
            np.flatnonzero(per_scope[scope]).tolist(), key=lambda n: (-int(per_scope[scope, n]), n)
        )
        values[scope] = tuple(dict.fromkeys(context.trace.names[int(names[n])] for n in order))
    return [Words("launch_api", values)]


def waits(context: Context) -> Int64:
    """Find the calls in which the host waits for the GPU, but for the one that ends the profiler's window."""
    return waits_of(context.tree)


def waits_of(tree: Tree) -> Int64:
    """Find the waits of a tree, as ``waits`` does."""
    rows = waiting_rows(tree.trace)
    found: Int64 = rows[rows != _closing(tree, rows)]
    return found


def closing_wait(tree: Tree) -> int:
    """Find the wait in which the profiler flushes its buffers after all work; NONE where there is none."""
    return _closing(tree, waiting_rows(tree.trace))


def _closing(tree: Tree, rows: Int64) -> int:
    trace = tree.trace
    if not rows.size:
        return NONE
    last = int(rows[np.argmax(trace.start_ns[rows])])
    if tree.parent[last] != NONE or not trace.name_of(last).endswith("DeviceSynchronize"):
        return NONE
    after_all = (
        not host.size or trace.start_ns[last] >= trace.end_ns()[host].max()
        for host in (tree.ops, tree.launches)
    )
    return last if all(after_all) else NONE


def _activities(context: Context) -> list[Column]:
    gpu = context.gpu
    return [
        gpu_count(context, "gpu_activities", np.ones(gpu.row.size, dtype=bool)),
        gpu_count(context, "kernels", gpu.kind == KERNEL),
        gpu_count(context, "memsets", gpu.kind == MEMSET),
    ]


def gpu_count(context: Context, key: str, wanted: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Column:
    """Count the wanted GPU activities of each call."""
    everywhere, own = context.ownership.gpu.sums(wanted)
    return Column(key, everywhere, own, context.gpu_known, context.gpu_rows(wanted))


def _ops(context: Context) -> list[Column]:
    if not context.has_ops:
        return []
    leaves = context.tree.n_children[context.tree.ops] == 0
    everywhere, own = context.ownership.ops.sums(leaves)
    return [Column("leaf_ops", everywhere, own)]


def _count(context: Context, key: str, rows: Int64) -> Column:
    layout = context.ownership.layout(work_of(context.trace, rows, context.tree.engine))
    everywhere, own = layout.sums()
    known = None if key != "launches" or rows.size else context.is_whole
    return Column(key, everywhere, own, known, context.work_rows(layout, rows))
