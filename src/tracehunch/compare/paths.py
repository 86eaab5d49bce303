"""The ops around an op, from the annotation down, as what tells one use of a kernel from another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Cat
from tracehunch.tree import NONE
from tracehunch.tree.names import is_framework, names_that

if TYPE_CHECKING:
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree

Path = tuple[str, ...]
Bool = NDArray[np.bool_]

OPTIMIZER: Final = "Optimizer.step#"
"""Beginning of the annotation that torch.optim writes around a step."""

_GENERATED: Final = re.compile(r"(triton_\w*?)_\d+")
"""Inductor numbers the kernels of a graph; another compilation gives other numbers."""


def op_paths(tree: Tree, rows: Int64) -> tuple[Int64, list[Path]]:
    """Return for host rows (or NONE) the number of their path in the list also returned; 0 is no path.

    A path holds the names of the ops around (and being) a row, outermost first, and an optimizer's step.
    Annotations that the user wrote end it; compiled regions, frameworks' other annotations and Python frames
    are left out.
    """
    trace, climb = tree.trace, _Climb.of(tree)
    start = climb.to_op(rows)
    ops = np.unique(start[start != NONE])
    above = climb.above(ops)
    number = np.zeros(len(trace) + 1, dtype=np.int64)  # the last entry is that of NONE
    paths: list[Path] = [()]
    for level in _by_depth(above):
        key = number[above[level]] * len(trace.names) + trace.name[level]
        keys, position = np.unique(key, return_inverse=True)
        number[level] = len(paths) + position.reshape(-1)
        for one in keys.tolist():
            outer, name = divmod(one, len(trace.names))
            paths.append((*paths[outer], plain_name(trace.names[name])))
    return number[start], paths


def plain_name(name: str) -> str:
    """Return an op's name without what differs between two compilations of the same code."""
    found = _GENERATED.fullmatch(name)
    return found.group(1) if found else name


@dataclass(frozen=True, slots=True)
class _Climb:
    """From a host row upwards."""

    tree: Tree
    shown: Bool  # rows that are part of a path
    ends: Bool  # rows at which one ends

    @classmethod
    def of(cls, tree: Tree) -> _Climb:
        trace = tree.trace
        frameworks = names_that(trace, is_framework)[trace.name]
        optimizers = names_that(trace, lambda name: name.startswith(OPTIMIZER))[trace.name]
        return cls(
            tree,
            shown=((trace.cat == Cat.CPU_OP) & ~frameworks)
            | ((trace.cat == Cat.USER_ANNOTATION) & optimizers),
            ends=(trace.cat == Cat.USER_ANNOTATION) & ~frameworks,
        )

    def to_op(self, rows: Int64) -> Int64:
        """Each row, or the innermost shown op around it; NONE where an annotation or nothing comes first."""
        found = rows.astype(np.int64)
        rising = np.flatnonzero((found != NONE) & ~self.shown[found]) if found.size else found
        while rising.size:
            found[rising] = np.where(self.ends[found[rising]], NONE, self.tree.parent[found[rising]])
            rising = rising[found[rising] != NONE]
            rising = rising[~self.shown[found[rising]]]
        return found

    def above(self, ops: Int64) -> Int64:
        """Per row of the trace the shown op around it, for these ops and all around them; else -2."""
        above = np.full(len(self.tree.trace) + 1, _NOT_ASKED, dtype=np.int64)
        above[NONE] = NONE
        fresh = ops
        while fresh.size:
            above[fresh] = self.to_op(self.tree.parent[fresh].astype(np.int64))
            fresh = np.unique(above[fresh])
            fresh = fresh[above[fresh] == _NOT_ASKED]
        return above


_NOT_ASKED: Final = -2


def _by_depth(above: Int64) -> list[Int64]:
    """Rows that have an answer in ``above``, outermost first."""
    rows = np.flatnonzero(above[:-1] != _NOT_ASKED)
    depth = np.zeros(rows.size, dtype=np.int64)
    current = above[rows]
    while (deeper := current != NONE).any():
        depth += deeper
        current = np.where(deeper, above[current], NONE)
    return [rows[depth == level] for level in range(int(depth.max(initial=-1)) + 1)]
