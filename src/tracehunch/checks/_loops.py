"""Loops that a program runs in Python: a short pattern of ops, many times over."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._ancestry import annotation_around
from tracehunch.facts.activities import called_ops
from tracehunch.facts.model import Facts
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.tree import Tree

_ITERATIONS: Final = 16
_BEFORE: Final = 3
_LONGEST: Final = 24
"""Ops in a pattern: the body of a loop over rows is short, a layer of a model is not."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Ops that the program called, in order: ``ops[i]`` and ``ops[i + period]`` have the same name."""

    ops: Int64
    period: int
    before: Int64  # the last few ops called before it, in the same block

    @property
    def iterations(self) -> int:
        """Whole passes through the pattern."""
        return self.ops.size // self.period

    def whole(self) -> Int64:
        """Return the ops of whole iterations, one row an iteration."""
        return self.ops[: self.iterations * self.period].reshape(-1, self.period)


def loops(facts: Facts) -> list[Loop]:
    """Find runs of a pattern of at most 24 ops, 16 times or more, on one thread within one annotation."""
    ops, block = _called_in_order(facts.tree)
    found = []
    for first, last, period in repeats(facts.tree.trace.name[ops], block):
        before = np.arange(max(first - _BEFORE, 0), first)
        found.append(Loop(ops[first:last], period, ops[before[block[before] == block[first]]]))
    return found


def repeats(names: NDArray[np.integer[Any]], block: Int64) -> list[tuple[int, int, int]]:
    """Find stretches, as (first, behind the last, period), in which a pattern of names repeats.

    Within one block, 16 times or more; where several periods fit, the shortest.
    """
    free = np.ones(names.size, dtype=bool)
    found = []
    for period in range(1, _LONGEST + 1):
        for first, last in _runs(names, block, free, period):
            free[first:last] = False
            found.append((first, last, period))
    return sorted(found)


def _called_in_order(tree: Tree) -> tuple[Int64, Int64]:
    """Ops that the program called outside autograd's engine, by thread and time, and the block each is in."""
    trace = tree.trace
    known = tree.ops[(trace.start_ns[tree.ops] != UNKNOWN_NS) & ~tree.engine[tree.ops]]
    is_called = np.zeros(len(trace), dtype=bool)
    is_called[called_ops(tree, known)] = True
    ops = np.flatnonzero(is_called)
    ops = ops[np.lexsort((trace.start_ns[ops], trace.thread[ops]))]
    around = annotation_around(tree, ops)
    return ops, around * (int(trace.thread.max(initial=0)) + 1) + trace.thread[ops]


def _runs(
    names: NDArray[np.integer[Any]], block: Int64, free: NDArray[np.bool_], period: int
) -> list[tuple[int, int]]:
    """Stretches, as (first, behind the last), in which every name returns after ``period`` ops."""
    if names.size <= period:
        return []
    same = (names[:-period] == names[period:]) & (block[:-period] == block[period:])
    same &= free[:-period] & free[period:]
    edges = np.flatnonzero(np.diff(np.r_[False, same, False]))
    first, last = edges[::2], edges[1::2]
    long = last - first >= (_ITERATIONS - 1) * period
    return [(int(a), int(b) + period) for a, b in zip(first[long], last[long], strict=True)]
