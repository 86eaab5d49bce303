"""torch.compile at work: its phases, and the activities that it launches to time candidates (autotuning)."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import names_that

_TIMED: Final = "(dynamo_timed)"
_OTHERS: Final = ("dynamo", "entire_frame_compile", "TORCHDYNAMO", "inductor_do_bench_using_profiling")


def is_compiler(name: str) -> bool:
    """Tell the annotations of a compilation's phases, and of the trial runs that choose between kernels."""
    return name.endswith(_TIMED) or name in _OTHERS


def is_autotuning(tree: Tree, rows: Int64) -> NDArray[np.bool_]:
    """Tell GPU activities that the compiler launched for itself; they are not the program's work."""
    tuning: NDArray[np.bool_] = innermost(tree, rows, is_compiler) != NONE
    return tuning


def innermost(tree: Tree, rows: Int64, wanted: Callable[[str], bool]) -> Int64:
    """For each row the innermost host row around (or being) its launch whose name is wanted; else NONE."""
    hit = names_that(tree.trace, wanted)
    found = np.full(rows.size, NONE, dtype=np.int64)
    if not hit.any():
        return found
    launch = tree.launch[rows].astype(np.int64)
    current = np.where(launch == NONE, rows, launch)
    alive = np.arange(rows.size)
    while alive.size:
        here = current[alive]
        match = hit[tree.trace.name[here]]
        found[alive[match]] = here[match]
        current[alive] = tree.parent[here]
        alive = alive[~match & (current[alive] != NONE)]
    return found
