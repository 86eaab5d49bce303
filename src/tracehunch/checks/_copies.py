"""Copies within one device: which activities, or on a CPU ops, only copy, cast or lay out data."""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched, leaf_ops, on_cpu_alone, on_gpu
from tracehunch.checks._ancestry import enclosing
from tracehunch.checks._copy_fixes import ADDING, CASTS, COPY_OP
from tracehunch.checks._once import once
from tracehunch.checks._scopes import by_call_us, total_us
from tracehunch.checks._sdpa_math import MATH_OP
from tracehunch.checks._weight import on_average
from tracehunch.facts.model import Facts, KernelUse, ScopeFacts
from tracehunch.kernels import is_copy_kernel
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import ENGINE_PREFIX, names_that
from tracehunch.units import plural, share, time_us

_CPU_COPIES: Final = frozenset({COPY_OP, "aten::cat"})
_TUNING: Final = ("CachingAutotuner", "(dynamo_timed)")  # the compiler's own trial runs
_READING: Final = "aten::_local_scalar_dense"  # to the host, though some drivers copy on the device first


@once
def copies(facts: Facts) -> Int64:
    """Find what copies within one device, but for the math fallback and the compiler's trial runs.

    What a library does inside one of its own ops, such as cuDNN's changes of layout, is not among them.
    """
    if on_gpu(facts):
        rows = launched(facts, _is_copy)
    elif on_cpu_alone(facts):
        rows = leaf_ops(facts, _CPU_COPIES.__contains__)
        rows = rows[~_no_fault_on_cpu(facts, rows)]
    else:
        return np.empty(0, dtype=np.int64)
    return without_others(facts, rows)


def without_others(facts: Facts, rows: Int64) -> Int64:
    """Leave out what belongs to the math fallback of attention, to a compiler's trial runs, to a read."""
    ours = rows[enclosing(facts.tree, rows, _belongs_elsewhere) == NONE]
    forward = _forward_of(facts.tree, ours)
    known = forward != NONE
    known[known] = enclosing(facts.tree, forward[known], _belongs_elsewhere) != NONE
    found: Int64 = ours[~known]
    return found


def _forward_of(tree: Tree, rows: Int64) -> Int64:
    """For each row of the backward the forward op that it comes from; NONE for all others."""
    nodes = enclosing(tree, rows, lambda name: name.startswith(ENGINE_PREFIX))
    return np.array([tree.backward_of.get(node, NONE) for node in nodes.tolist()], dtype=np.int64)


def amount(facts: Facts, scope: ScopeFacts, rows: Int64, what: Iterable[str] = ("copy", "copies")) -> str:
    """Write ``1 copy a call, 127.6 us (12% of the scope's GPU time)``."""
    times = by_call_us(facts, scope, rows)
    device = "GPU" if on_gpu(facts) else "CPU"
    of_all = share(float(times.sum()), total_us(facts, scope))
    number = plural(per_call(scope, rows), *what)
    return (
        f"{number} a call, {time_us(float(times.mean()))}{on_average(times)} "
        f"({of_all} of the scope's {device} time)"
    )


def per_call(scope: ScopeFacts, rows: Any) -> float:
    """Return how many rows a call of their scope has."""
    return round(len(rows) / len(scope.scope.calls), 1)


def _no_fault_on_cpu(facts: Facts, rows: Int64) -> NDArray[np.bool_]:
    """Tell copies of an addend, with which a CPU's addmm begins its result, and casts of single numbers."""
    tree = facts.tree
    trace = tree.trace
    around = np.where(tree.parent[rows] == NONE, NONE, tree.op[tree.parent[rows]])
    name = trace.name[around]
    addend = (around != NONE) & names_that(trace, ADDING.__contains__)[name]
    cast = (around != NONE) & names_that(trace, CASTS.__contains__)[name]
    of_number = [
        bool(inside) and _is_number(facts, row) for row, inside in zip(rows.tolist(), cast, strict=True)
    ]
    found: NDArray[np.bool_] = addend | np.array(of_number, dtype=bool)
    return found


def _is_number(facts: Facts, row: int) -> bool:
    """Tell whether an op was recorded to write a single number, as those in ``x * 0.5`` are cast."""
    dims = facts.tree.trace.args_of(row).get("Input Dims")
    return isinstance(dims, list) and dims[:1] == [[]]


def _belongs_elsewhere(name: str) -> bool:
    return name in {MATH_OP, _READING} or any(word in name for word in _TUNING)


def _is_copy(use: KernelUse) -> bool:
    if use.kind == "memcpy":
        return ("direction", "device to device") in use.identity.fields
    return (
        use.kind == "kernel" and is_copy_kernel(use.identity) and use.identity.algorithm != "layout-transform"
    )
