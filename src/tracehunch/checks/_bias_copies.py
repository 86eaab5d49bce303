"""Copies with which a compiled product begins: of what it adds, into its output."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched
from tracehunch.checks._ancestry import enclosing
from tracehunch.checks._copy_fixes import ADDING
from tracehunch.checks._products import sizes
from tracehunch.facts.compiled.rows import is_graph_call, is_region
from tracehunch.facts.compiler import innermost, is_autotuning
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.kernels import is_copy_kernel
from tracehunch.trace.model import Int64, Trace
from tracehunch.tree import NONE

_OPERANDS: Final = 3  # what is added, and the factors


def bias_copies(facts: Facts) -> Int64:
    """Find copies launched inside ``addmm`` and its like in compiled code, or with ``out=``."""
    tree = facts.tree
    rows = launched(facts, is_copy)
    if not rows.size:
        return rows
    op = enclosing(tree, rows, ADDING.__contains__)
    compiled = innermost(tree, rows, lambda name: is_graph_call(name) or is_region(name)) != NONE
    wanted = (op != NONE) & (compiled | _has_out(tree.trace, op)) & ~is_autotuning(tree, rows)
    found: Int64 = rows[wanted]
    return found


def is_copy(use: KernelUse) -> bool:
    """Tell copies within one device."""
    if use.kind == "memcpy":
        return ("direction", "device to device") in use.identity.fields
    return use.kind == "kernel" and is_copy_kernel(use.identity)


def addend(trace: Trace, op: int) -> tuple[int, ...]:
    """Return the sizes of what an op adds; () where they were not recorded."""
    dims = trace.input_of(op).dims
    return sizes(dims[0]) if isinstance(dims, list) and dims else ()


def _has_out(trace: Trace, op: Int64) -> NDArray[np.bool_]:
    """Tell ops that were recorded with a tensor to write to, after their operands and numbers."""
    found, inside = np.zeros(op.size, dtype=bool), op != NONE
    which, inputs = trace.inputs_of(op[inside])
    found[inside] = np.array([_writes_to(one.dims) for one in inputs], dtype=bool)[which]
    return found


def _writes_to(dims: Any) -> bool:
    return isinstance(dims, list) and len(dims) > _OPERANDS and bool(sizes(dims[-1]))
