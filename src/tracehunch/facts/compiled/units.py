"""Kernels per compiled region: what the code that was compiled for one call launches."""

from typing import Final

import numpy as np

from tracehunch.facts.activities import KERNEL, called_ops, is_library
from tracehunch.facts.column import Column
from tracehunch.facts.compiled.names import is_host_kernel
from tracehunch.facts.compiled.rows import annotated, is_graph_call, is_region
from tracehunch.facts.compiler import innermost, is_autotuning, is_compiler
from tracehunch.facts.context import Context
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Tree, work_of
from tracehunch.tree.names import names_that

_NO_WORK: Final = frozenset(
    f"aten::{name}"
    for name in (
        "empty", "empty_strided", "empty_like", "as_strided", "view", "_unsafe_view", "reshape", "expand",
        "permute", "t", "transpose", "detach", "alias", "slice", "select", "squeeze", "unsqueeze",
        "resolve_conj", "resolve_neg", "lift_fresh", "_reshape_alias", "unfold", "split",
    )
)  # fmt: skip
"""Ops that only allocate, or look at memory in another way."""


def kernels_column(context: Context) -> list[Column]:
    """Count for each call the kernels of the compiled region that launches most of them.

    Graphs count beside the regions around them, which have no fewer: so calls that are inside a region, and
    backwards, which no region is around, have theirs.
    """
    tree = context.tree
    units = np.sort(np.concatenate([annotated(tree, is_region), annotated(tree, is_graph_call)]))
    rows = _kernels(context)
    if not units.size or rows is None:
        return []
    around_kernels = [innermost(tree, rows, is_region), innermost(tree, rows, is_graph_call)]
    unit = np.concatenate(around_kernels)
    n_kernels = np.bincount(np.searchsorted(units, unit[unit != NONE]), minlength=units.size)
    layout = context.ownership.layout(work_of(context.trace, units, tree.engine))
    most = np.zeros(context.n_calls, dtype=np.int64)
    np.maximum.at(most, layout.pairs.call, n_kernels[layout.pairs.item])
    known = layout.sums()[0] > 0
    if context.gpu.row.size:
        inside = np.isin(context.gpu.row, rows[np.maximum(*around_kernels) != NONE])
        known &= context.gpu_known
        return [Column("compiled.kernels", most, None, known, context.gpu_rows(inside))]
    known &= layout.sums(n_kernels == 0)[0] == 0
    return [Column("compiled.kernels", most, None, known, context.work_rows(layout, units))]


def host_kernels(tree: Tree) -> Int64:
    """Find the rows of generated C++ loops; none where they were not recorded."""
    return annotated(tree, is_host_kernel)


def _kernels(context: Context) -> Int64 | None:
    """Rows of kernels, without the compiler's trial runs; None where they were not recorded."""
    tree, gpu = context.tree, context.gpu
    if gpu.row.size:
        rows: Int64 = gpu.row[gpu.kind == KERNEL]
        return rows[~is_autotuning(tree, rows)]
    loops = host_kernels(tree)
    if not loops.size:
        return None
    calls = library_calls(tree)
    return np.concatenate([loops, calls[innermost(tree, calls, is_graph_call) != NONE]])


def library_calls(tree: Tree) -> Int64:
    """Find calls of library ops that compute, in compiled regions and graphs; not what the compiler calls."""
    ops = tree.ops
    if not ops.size:
        return ops
    library = names_that(tree.trace, is_library) & ~names_that(tree.trace, _NO_WORK.__contains__)
    rows = ops[library[tree.trace.name[ops]] & (called_ops(tree, ops) == ops)]
    inside = (innermost(tree, rows, _is_unit) != NONE) & (innermost(tree, rows, is_compiler) == NONE)
    found: Int64 = rows[inside]
    return found


def _is_unit(name: str) -> bool:
    return is_region(name) or is_graph_call(name)
