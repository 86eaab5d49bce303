"""From an activity upwards: the ops around it, and the op that the program called."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import names_that

_NOT_CALLED = ("autograd::", "torch::autograd::")  # names with a namespace that no program calls


def enclosing(tree: Tree, rows: Any, wanted: Callable[[str], bool]) -> Int64:
    """For each row the outermost op around (or being) it whose name satisfies ``wanted``; else NONE."""
    trace = tree.trace
    hit = names_that(trace, wanted)
    current, found = _start(tree, rows)
    while (alive := current != NONE).any():
        here = current[alive]
        match = (trace.cat[here] == Cat.CPU_OP) & hit[trace.name[here]]
        found[np.flatnonzero(alive)[match]] = here[match]
        current[alive] = tree.parent[here]
    return found


def called_op(tree: Tree, rows: Any) -> Int64:
    """For each row the op that the program called to cause it; NONE where no op is known.

    Ops of a library (``aten::copy_`` in ``aten::clone`` in ``aten::masked_fill``) call each other; the
    outermost of that unbroken run is what the program wrote. A node of autograd, an annotation or a compiled
    region ends it.
    """
    trace = tree.trace
    library = names_that(trace, lambda name: "::" in name and not name.startswith(_NOT_CALLED))
    current, found = _start(tree, rows)
    while (alive := np.flatnonzero(current != NONE)).size:
        here = current[alive]
        is_op = (trace.cat[here] == Cat.CPU_OP) & library[trace.name[here]]
        found[alive[is_op]] = here[is_op]
        # Python frames between two ops (an op written in Python) do not end the run
        goes_on = is_op | (trace.cat[here] == Cat.PYTHON_FUNCTION)
        current[alive] = np.where(goes_on, tree.parent[here], NONE)
    return found


def annotation_around(tree: Tree, rows: Any, *, outermost: bool = False) -> Int64:
    """For each host row the innermost annotation or step around it (or the outermost); NONE without any."""
    trace = tree.trace
    current = tree.parent[np.asarray(rows, dtype=np.int64)].astype(np.int64)
    found = np.full(current.size, NONE, dtype=np.int64)
    while (alive := np.flatnonzero(current != NONE)).size:
        here = current[alive]
        hit = trace.cat[here] == Cat.USER_ANNOTATION
        found[alive[hit]] = here[hit]
        goes_on = outermost | ~hit
        current[alive] = np.where(goes_on, tree.parent[here], NONE)
    return found


def children(tree: Tree, row: int) -> list[str]:
    """Names of the ops directly inside an op, in order."""
    trace = tree.trace
    inside = np.flatnonzero((tree.parent == row) & (trace.cat == Cat.CPU_OP))
    return [trace.name_of(int(child)) for child in inside]


def path_inside(tree: Tree, row: int, outer: int) -> list[str]:
    """Names of the ops from just inside an op to the one that launched a row."""
    trace, inner = tree.trace, int(tree.op[row])
    path = [inner, *tree.ancestors(inner)]
    ops = [one for one in path[: path.index(outer)] if trace.cat[one] == Cat.CPU_OP]
    return [trace.name_of(one) for one in reversed(ops)]


def child_under(tree: Tree, rows: Any, ancestor_rows: Any) -> Int64:
    """For each row the op directly inside its given ancestor; the ancestor itself if no op is in between."""
    trace = tree.trace
    ancestors = np.asarray(ancestor_rows, dtype=np.int64)
    current, found = _start(tree, rows)
    while (alive := np.flatnonzero((current != NONE) & (current != ancestors))).size:
        here = current[alive]
        is_op = trace.cat[here] == Cat.CPU_OP
        found[alive[is_op]] = here[is_op]
        current[alive] = tree.parent[here]
    return np.where(found == NONE, ancestors, found)


def _start(tree: Tree, rows: Any) -> tuple[Int64, Int64]:
    chosen = np.asarray(rows, dtype=np.int64)
    return tree.op[chosen].astype(np.int64), np.full(chosen.size, NONE, dtype=np.int64)
