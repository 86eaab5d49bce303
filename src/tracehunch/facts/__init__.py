"""Tree -> Facts: what each scope does per call, and the counts over the whole file."""

import numpy as np

from tracehunch.facts import compute, copies, counts, graphs, sdpa, times
from tracehunch.facts.context import Context
from tracehunch.facts.model import Fact, Facts, KernelUse, ScopeFacts, Value
from tracehunch.facts.summary import summarise, summarise_own
from tracehunch.facts.trace_counts import trace_counts
from tracehunch.facts.uses import kernel_uses
from tracehunch.facts.vocabulary import KEYS, MEANINGS, Key
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
    return Facts(tree, _measured(context), trace_counts(context))


def measure_rows(tree: Tree, name: str, rows: list[int]) -> ScopeFacts:
    """Measure host rows, such as the calls of one op, as if they were the calls of an annotation."""
    scope, ownership = scope_of_rows(tree, name, np.array(sorted(rows), dtype=np.int64))
    return _measured(Context(tree, [scope], ownership))[0]


def _measured(context: Context) -> tuple[ScopeFacts, ...]:
    columns = [
        column for group in (counts, times, copies, compute, graphs) for column in group.columns(context)
    ]
    words = [word for group in (counts, sdpa, compute, graphs) for word in group.words(context)]
    parts = zip(
        context.scopes,
        summarise(context, columns, words),
        summarise_own(context, columns),
        kernel_uses(context),
        strict=True,
    )
    return tuple(ScopeFacts(scope, facts, own, kernels) for scope, facts, own, kernels in parts)
