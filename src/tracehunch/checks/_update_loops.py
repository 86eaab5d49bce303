"""Loops of the program's own that update many tensors in place, one after the other."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks._activities import launched
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._loops import Loop, loops
from tracehunch.checks._once import once
from tracehunch.checks._row_loops import INDEXING, row_loops
from tracehunch.facts.compiler import is_autotuning
from tracehunch.facts.model import Facts
from tracehunch.trace.model import Int64
from tracehunch.tree import Tree

_NAMES: Final = """
    mul add sub div lerp addcmul addcdiv sqrt rsqrt square pow neg sign reciprocal maximum clamp clamp_min
    clamp_max exp
"""
_OF_ONE_TENSOR: Final = frozenset(f"aten::{name}{end}" for name in _NAMES.split() for end in ("", "_"))
"""Ops with a foreach form, but for those that only copy or fill."""
_OPTIMIZER: Final = "Optimizer.step#"


@dataclass(frozen=True, slots=True)
class UpdateLoop:
    """A loop over tensors: the ops of one pass that launch something, and what all passes launched."""

    pattern: tuple[str, ...]
    iterations: int
    rows: Int64  # GPU activities, in order
    of_one_pass: int
    sizes_differ: bool  # so that it is a loop over tensors, not over one that changes again and again


@once
def update_loops(facts: Facts) -> list[UpdateLoop]:
    """Find loops outside ``Optimizer.step`` whose passes only do arithmetic in place, without indexing."""
    candidates = [loop for loop in loops(facts) if _is_over_tensors(facts.tree, loop)]
    if not candidates:
        return []
    gpu = launched(facts, lambda use: use.kind in {"kernel", "memcpy"})
    gpu = np.setdiff1d(gpu, np.concatenate([gpu[:0], *(loop.rows for loop in row_loops(facts))]))
    gpu = gpu[~is_autotuning(facts.tree, gpu)]
    called = called_op(facts.tree, gpu)
    found = (_with_activities(facts.tree, loop, gpu, called) for loop in candidates)
    return [loop for loop in found if loop is not None]


def _is_over_tensors(tree: Tree, loop: Loop) -> bool:
    names = {tree.trace.name_of(op) for op in loop.ops[: loop.period].tolist()}
    writes = {name for name in names & _OF_ONE_TENSOR if name.endswith("_")}
    around = (tree.trace.name_of(row) for row in tree.ancestors(int(loop.ops[0])))
    return bool(writes) and not names & INDEXING and not any(name.startswith(_OPTIMIZER) for name in around)


def _with_activities(tree: Tree, loop: Loop, gpu: Int64, called: Int64) -> UpdateLoop | None:
    trace, mine = tree.trace, np.isin(called, loop.ops)
    rows, ops = gpu[mine], called[mine]
    order = np.argsort(trace.start_ns[tree.launch[rows]], kind="stable")
    rows, ops = rows[order], ops[order]
    if rows.size < loop.iterations or not {trace.name_of(op) for op in ops.tolist()} <= _OF_ONE_TENSOR:
        return None
    of_one_pass = rows.size // loop.iterations
    return UpdateLoop(
        pattern=tuple(trace.name_of(op) for op in ops[:of_one_pass].tolist()),
        iterations=loop.iterations,
        rows=rows,
        of_one_pass=of_one_pass,
        sizes_differ=_sizes_differ(tree, loop),
    )


def _sizes_differ(tree: Tree, loop: Loop) -> bool:
    """Tell whether the operands of the passes are of several sizes, as recorded shapes tell."""
    trace, passes = tree.trace, loop.whole()
    writing = [column for column in passes.T if trace.name_of(int(column[0])) in _OF_ONE_TENSOR]
    return any(
        len({str(trace.args_of(op).get("Input Dims")) for op in column.tolist()}) > 1 for column in writing
    )
