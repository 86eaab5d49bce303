"""Host calls that wait for the GPU: which of them the program causes, and how."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._ancestry import called_op
from tracehunch.checks._pageable import held_up_by, host_copies
from tracehunch.facts.counts import waits_of
from tracehunch.facts.intervals import Cover
from tracehunch.facts.model import Facts
from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import is_framework, is_step, names_that

Bool = NDArray[np.bool_]

_COMPILING: Final = ("CachingAutotuner", "(dynamo_timed)")
_PRINTING: Final = "_tensor_str.py"


class WaitKind(IntEnum):
    """Where a wait comes from."""

    OP = 0  # an op that the program called needs a value from the GPU
    PRINT = 1  # the text of a tensor
    CALL = 2  # the program itself synchronises
    EDGE = 3  # it does so between two steps, as a benchmark does
    LIBRARY = 4  # PyTorch's own Python or C++ code around ops, such as DistributedDataParallel


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of the program. ``kind`` and ``source`` have one entry per row of the trace, like a Tree's."""

    rows: Int64
    kind: Int64  # WaitKind
    source: Int64  # row that makes the wait: the op that the program called, a library's annotation, itself

    @classmethod
    def of(cls, facts: Facts) -> Self:
        """Find them, and where they come from."""
        rows = _waits_of_program(facts)
        kind, source = np.full((2, len(facts.tree.trace)), NONE, dtype=np.int64)
        kind[rows], source[rows] = _causes(facts.tree, rows)
        return cls(rows, kind, source)


def _waits_of_program(facts: Facts) -> Int64:
    """Leave out the profiler's own wait, a compiler's trial runs, and the copies of ``pageable-copy``.

    A small copy to pageable memory waits in the call that launches it, before the call that synchronises.
    """
    tree = facts.tree
    copies = host_copies(facts)
    held = held_up_by(facts, copies.of(copies.pageable & copies.large).rows)
    small = copies.of(copies.pageable & ~copies.large & ~copies.to_device).rows
    rows = np.setdiff1d(np.union1d(waits_of(tree), tree.launch[small]), held)
    compiling = names_that(tree.trace, lambda name: any(word in name for word in _COMPILING))
    ours: Int64 = rows[_around(tree, rows, compiling[tree.trace.name]) == NONE]
    return ours


def _causes(tree: Tree, rows: Int64) -> tuple[Int64, Int64]:
    op = called_op(tree, rows)
    library = _around(tree, rows, _libraries_own(tree))
    edge = _between_steps(tree, rows)
    kind = np.select(
        [op != NONE, library != NONE, edge], [WaitKind.OP, WaitKind.LIBRARY, WaitKind.EDGE], WaitKind.CALL
    ).astype(np.int64)
    if tree.trace.header.recorded.stacks:
        for at in np.flatnonzero(op != NONE).tolist():
            if _is_printing(tree, int(rows[at])):
                kind[at] = WaitKind.PRINT
    return kind, np.where(op != NONE, op, np.where(library != NONE, library, rows))


def _around(tree: Tree, rows: Int64, wanted: Bool) -> Int64:
    """For each host row the outermost row around it that is ``wanted``; NONE where none is."""
    found = np.full(rows.size, NONE, dtype=np.int64)
    at = np.where(rows == NONE, NONE, tree.parent[rows]).astype(np.int64)
    while (alive := np.flatnonzero(at != NONE)).size:
        here = at[alive]
        hit = wanted[here]
        found[alive[hit]] = here[hit]
        at[alive] = tree.parent[here]
    return found


def _libraries_own(tree: Tree) -> Bool:
    """Annotations that PyTorch or one of its libraries writes around its own code."""
    trace = tree.trace
    framework = names_that(trace, is_framework)[trace.name]
    own: Bool = framework & (trace.cat == Cat.USER_ANNOTATION)
    return own


def _is_printing(tree: Tree, row: int) -> bool:
    frames = [] if tree.frames is None else tree.frames.around(row)
    return any(_PRINTING in tree.trace.name_of(frame) for frame in frames)


def printing(tree: Tree) -> Cover:
    """Find the time in which the text of a tensor was made, as far as stacks were recorded."""
    trace = tree.trace
    rows = trace.rows(Cat.PYTHON_FUNCTION)
    rows = rows[names_that(trace, lambda name: _PRINTING in name)[trace.name[rows]]]
    return Cover(trace.start_ns[rows], trace.end_ns()[rows])


def _between_steps(tree: Tree, rows: Int64) -> Bool:
    """Tell waits that lie between two repetitions of the same thing: steps, or calls of one annotation."""
    trace = tree.trace
    steps = is_step(trace)
    annotations = (trace.cat == Cat.USER_ANNOTATION) & ~steps & ~_libraries_own(tree)
    before, after = _launches_around(tree, rows)
    ends = (before == NONE) | (after == NONE)
    step = [_around(tree, side, steps) for side in (before, after)]
    unit = [_around(tree, side, annotations) for side in (before, after)]
    known = (unit[0] != NONE) & (unit[1] != NONE)
    again = known & (unit[0] != unit[1]) & (trace.name[unit[0]] == trace.name[unit[1]])
    between: Bool = ends | (step[0] != step[1]) | again
    return between


def _launches_around(tree: Tree, rows: Int64) -> tuple[Int64, Int64]:
    """For each row the last launch of its thread before it, and the first one after; NONE at the ends."""
    trace = tree.trace
    before, after = np.full((2, rows.size), NONE, dtype=np.int64)
    for thread in np.unique(trace.thread[rows]).tolist():
        mine = np.flatnonzero(trace.thread[rows] == thread)
        launches = tree.launches[trace.thread[tree.launches] == thread]
        launches = launches[np.argsort(trace.start_ns[launches], kind="stable")]
        at = np.searchsorted(trace.start_ns[launches], trace.start_ns[rows[mine]])
        before[mine[at > 0]] = launches[at[at > 0] - 1]
        after[mine[at < launches.size]] = launches[at[at < launches.size]]
    return before, after
