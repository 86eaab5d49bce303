"""Which generated kernels each scope runs, and the ops merged in them."""

import numpy as np

from tracehunch.facts.column import Words
from tracehunch.facts.compiled.names import Generated, generated
from tracehunch.facts.compiled.units import host_kernels
from tracehunch.facts.context import Context
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Tree, work_of
from tracehunch.tree.keys import numbered


def fused_words(context: Context) -> list[Words]:
    """Return for each scope the ops merged in its generated kernels, joined as in their names."""
    tree = context.tree
    layout, rows = context.ownership.gpu, context.gpu.row
    if not rows.size:
        rows = host_kernels(tree)
        layout = context.ownership.layout(work_of(context.trace, rows, tree.engine))
    names = numbered(_told_by(tree, rows))
    joined = {
        number: found.joined
        for number, at in enumerate(names.keys.tolist())
        if at != NONE and (found := generated(tree.trace.names[at])) is not None and found.joined
    }
    if not joined:
        return []
    wanted = np.isin(names.number, list(joined))
    at = np.flatnonzero(wanted[layout.pairs.item])
    scope = context.scope_of_call[layout.pairs.call[at]]
    key = np.unique(scope * names.keys.size + names.number[layout.pairs.item[at]])
    values: dict[int, set[str]] = {}
    for of_scope, number in (divmod(one, names.keys.size) for one in key.tolist()):
        values.setdefault(of_scope, set()).add(joined[number])
    return [Words("fused", {of_scope: tuple(sorted(found)) for of_scope, found in values.items()})]


def generated_among(tree: Tree, rows: Int64) -> list[Generated | None]:
    """Return for GPU rows, or rows of generated C++ loops, what their names say; None for all others."""
    return [None if at == NONE else generated(tree.trace.names[at]) for at in _told_by(tree, rows).tolist()]


def _told_by(tree: Tree, rows: Int64) -> Int64:
    """Return for each row the number of the name that tells its ops: its own, else its op's; NONE for others.

    With ``unique_kernel_names=False`` all kernels are called ``triton_``, and only the op has the name.
    """
    trace = tree.trace
    names = np.array([generated(name) is not None for name in trace.names], dtype=bool)
    own = trace.name[rows].astype(np.int64)
    op = tree.op[rows].astype(np.int64)
    above = np.where(op == NONE, own, trace.name[op]) if rows.size else own
    unnamed = np.array([name.startswith("triton_") for name in trace.names], dtype=bool)
    told = np.where(names[own], own, np.where(unnamed[own] & names[above], above, NONE)) if rows.size else own
    return told.astype(np.int64)
