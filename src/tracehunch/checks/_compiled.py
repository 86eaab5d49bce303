"""The time that compiled functions spend in look-ups and wrappers."""

import numpy as np

from tracehunch.checks._spans import Spans
from tracehunch.facts.compiled.rows import annotated, is_graph_call, is_lookup, is_region
from tracehunch.facts.compiler import innermost, is_compiler
from tracehunch.facts.intervals import Cover
from tracehunch.trace.model import Int64, Trace
from tracehunch.tree import NONE, Tree


def cover_of(tree: Tree, rows: Int64) -> Cover:
    """Return the time that any of some rows cover."""
    return Cover(tree.trace.start_ns[rows], tree.trace.end_ns()[rows])


def wrapper_spans(tree: Tree) -> Spans:
    """Return the time in look-ups and compiled regions that is neither in generated code nor in ops."""
    trace = tree.trace
    around = np.concatenate([annotated(tree, is_lookup), annotated(tree, is_region)])
    work = annotated(tree, lambda name: is_graph_call(name) or ("::" in name and not is_compiler(name)))
    work = work[innermost(tree, work, is_lookup) == NONE]  # what guards compute is theirs
    return _spans(trace, around).outside(_spans(trace, work))


def _spans(trace: Trace, rows: Int64) -> Spans:
    return Spans.of(trace.start_ns[rows], trace.end_ns()[rows], rows)
