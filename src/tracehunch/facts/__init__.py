"""Tree -> Facts: what each scope does per call, and the counts over the whole file."""

import numpy as np

from tracehunch.facts import compiled, compute, copies, counts, graphs, roofline, sdpa, times
from tracehunch.facts.context import Context
from tracehunch.facts.model import Fact, Facts, KernelUse, ScopeFacts, Value
from tracehunch.facts.summary import summarise, summarise_own
from tracehunch.facts.trace_counts import trace_counts
from tracehunch.facts.uses import kernel_uses
from tracehunch.facts.vocabulary import KEYS, MEANINGS, Key
from tracehunch.trace.collecting import uncollected
from tracehunch.tree import Tree, scope_of_rows

__all__ = [
    "KEYS",
    "MEANINGS",
    "Fact",
    "Facts",
    "KernelUse",
    "Key",
    "ScopeFacts",
    "Value",
    "measure",
    "measure_rows",
]


def measure(tree: Tree) -> Facts:
    """Measure every scope. Facts that cannot be known are absent."""
    context = Context(tree, tree.scopes, tree.ownership)
    with uncollected():
        return Facts(tree, _measured(context), trace_counts(context))


def measure_rows(tree: Tree, name: str, rows: list[int]) -> ScopeFacts:
    """Measure host rows, such as the calls of one op, as if they were the calls of an annotation."""
    scope, ownership = scope_of_rows(tree, name, np.array(sorted(rows), dtype=np.int64))
    return _measured(Context(tree, [scope], ownership))[0]


def _measured(context: Context) -> tuple[ScopeFacts, ...]:
    groups = (counts, times, copies, compute, graphs, compiled, roofline)
    columns = [column for group in groups for column in group.columns(context)]
    words = [word for group in (counts, sdpa, compute, compiled) for word in group.words(context)]
    parts = zip(
        context.scopes,
        summarise(context, columns, words),
        summarise_own(context, columns),
        kernel_uses(context),
        roofline.percents(context),
        strict=True,
    )
    shapes, known_gpu = context.trace.header.recorded.shapes, context.model is not None
    found = []
    for scope, facts, own, kernels, percents in parts:
        all_facts = roofline.with_bound(facts, kernels, known_gpu=known_gpu) if shapes else facts
        found.append(ScopeFacts(scope, all_facts, own, kernels, percents))
    return tuple(found)
