"""Compiled regions that ran, and the compiler's trial runs."""

import numpy as np

from tracehunch.facts.column import Column
from tracehunch.facts.compiled.rows import annotated, is_graph_call, is_lookup, is_region
from tracehunch.facts.compiler import is_autotuning, is_compiler
from tracehunch.facts.context import Context
from tracehunch.trace.model import Int64
from tracehunch.tree import work_of


def regions_columns(context: Context) -> list[Column]:
    """Count regions (graphs where only these were recorded), and what was launched to choose among kernels.

    Where Dynamo looked for compiled code, or compiled, and nothing ran of it, the regions are none.
    """
    tree = context.tree
    regions = annotated(tree, is_region)
    if not regions.size:
        regions = annotated(tree, is_graph_call)
    if not regions.size and not annotated(tree, _is_dynamo).size:
        return []
    found = [_count(context, "compiled", regions)]
    tuning = is_autotuning(tree, context.gpu.row)
    if tuning.any():
        trials, own = context.ownership.gpu.sums(np.asarray(tuning))
        found.append(Column("compiled.autotuning", trials, own, context.gpu_known, context.gpu_rows(tuning)))
    return found


def _is_dynamo(name: str) -> bool:
    return is_lookup(name) or is_compiler(name)


def _count(context: Context, key: str, rows: Int64) -> Column:
    layout = context.ownership.layout(work_of(context.trace, rows, context.tree.engine))
    return Column(key, layout.sums()[0], None, None, context.work_rows(layout, rows))
