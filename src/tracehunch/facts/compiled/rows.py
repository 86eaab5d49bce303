"""What torch.compile leaves in a trace: cache look-ups, regions, generated graphs, compilations."""

from collections.abc import Callable
from typing import Final

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import names_that

LOOKUP: Final = "TorchDynamo Cache Lookup"
REGION: Final = "Torch-Compiled Region"
GRAPH_CALL: Final = "## Call CompiledFxGraph "
FRAMES: Final = frozenset(
    {"dynamo", "entire_frame_compile", "_compile.compile_inner (dynamo_timed)", "_compile.compile_inner"}
)
"""Phases of which each compilation of a Python frame has at least one."""


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
    hit = names_that(trace, wanted)
    rows = np.flatnonzero(hit[trace.name]) if hit.any() else np.zeros(0, dtype=np.int64)
    rows = rows[np.isin(trace.cat[rows], (Cat.CPU_OP, Cat.USER_ANNOTATION))]
    timed: Int64 = rows[(trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] != UNKNOWN_NS)]
    return timed


def around(tree: Tree, rows: Int64, wanted: Callable[[str], bool]) -> Int64:
    """For each host row the innermost row above it (not itself) whose name is wanted; else NONE."""
    hit = names_that(tree.trace, wanted)
    current = tree.parent[rows].astype(np.int64)
    climbing = np.flatnonzero(current != NONE)
    while climbing.size:
        climbing = climbing[~hit[tree.trace.name[current[climbing]]]]
        current[climbing] = tree.parent[current[climbing]]
        climbing = climbing[current[climbing] != NONE]
    return current
