"""What torch.compile leaves in a trace: cache look-ups, regions, generated graphs, wrappers."""

from collections.abc import Callable
from typing import Final

import numpy as np

from tracehunch.checks._spans import Spans
from tracehunch.facts.compiler import innermost, is_compiler
from tracehunch.facts.intervals import Cover
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import names_that

LOOKUP: Final = "TorchDynamo Cache Lookup"
REGION: Final = "Torch-Compiled Region"
GRAPH_CALL: Final = "## Call CompiledFxGraph "


def is_lookup(name: str) -> bool:
    """Tell the evaluation of guards, which finds compiled code for a call."""
    return name == LOOKUP


def is_region(name: str) -> bool:
    """Tell the run of a compiled function, with its wrappers."""
    return name.startswith(REGION)


def is_graph_call(name: str) -> bool:
    """Tell the run of the code that Inductor generated for one graph."""
    return name.startswith(GRAPH_CALL)


def annotated(tree: Tree, wanted: Callable[[str], bool]) -> Int64:
    """Find rows with a known time that torch.compile wrote, in order of the file."""
    trace = tree.trace
    rows = np.flatnonzero(names_that(trace, wanted)[trace.name])
    rows = rows[np.isin(trace.cat[rows], (Cat.CPU_OP, Cat.USER_ANNOTATION))]
    timed: Int64 = rows[(trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] != UNKNOWN_NS)]
    return timed


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
