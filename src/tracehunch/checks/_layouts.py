"""Copies whose purpose is another layout of the same data."""

from collections.abc import Set as AbstractSet
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched, uses
from tracehunch.checks._ancestry import called_op, enclosing
from tracehunch.checks._copies import copies, without_others
from tracehunch.checks._copy_fixes import CONVOLVING
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.names import ENGINE_PREFIX, names_that

CONTIGUOUS: Final = "aten::contiguous"
_KEEPING_TYPE: Final = frozenset({"aten::clone", "aten::to", "aten::_to_copy"})
"""Ops that copy for the layout's sake only if the copy has other strides and the same type."""
_LIBRARIES: Final = frozenset({"cudnn", "miopen"})
_CASTING_WRAPPER: Final = "gpu_kernel_impl<"


def library_transforms(facts: Facts) -> Int64:
    """Find the kernels with which a convolution library changes the layout of its inputs and results."""
    return without_others(facts, launched(facts, _is_library_transform))


def copies_inside_convolutions(facts: Facts) -> Int64:
    """Find the copies that bring an operand of a convolution into the layout of the others."""
    rows = copies(facts)
    inside = rows[_called(facts, rows, CONVOLVING)]
    found: Int64 = inside[enclosing(facts.tree, inside, CONTIGUOUS.__eq__) != NONE]
    return found


def layout_copies(facts: Facts) -> Int64:
    """Find the copies that a program asked for by name to have a tensor in another layout."""
    rows = copies(facts)
    rows = rows[enclosing(facts.tree, rows, lambda name: name.startswith(ENGINE_PREFIX)) == NONE]
    contiguous, keeping_type = _called(facts, rows, {CONTIGUOUS}), _called(facts, rows, _KEEPING_TYPE)
    found: Int64 = rows[contiguous | (keeping_type & _moved(facts, rows))]
    return found


def unnamed_layout_copies(facts: Facts) -> Int64:
    """Find the copies that only move data, as their kernels' names tell, and whose op is not in the trace."""
    rows = copies(facts)
    rows = rows[called_op(facts.tree, rows) == NONE]
    found: Int64 = rows[_moved(facts, rows)]
    return found


def _moved(facts: Facts, rows: Int64) -> NDArray[np.bool_]:
    trace = facts.tree.trace
    kernels = {use.name for use in uses(facts) if _only_moves(use)}
    found: NDArray[np.bool_] = names_that(trace, kernels.__contains__)[trace.name[rows]]
    return found


def _called(facts: Facts, rows: Int64, ops: AbstractSet[str]) -> NDArray[np.bool_]:
    """Tell for each row whether the op that the program called is one of some."""
    trace = facts.tree.trace
    called = called_op(facts.tree, rows)
    found: NDArray[np.bool_] = (called != NONE) & names_that(trace, ops.__contains__)[trace.name[called]]
    return found


def _is_library_transform(use: KernelUse) -> bool:
    return use.identity.library in _LIBRARIES and use.identity.algorithm == "layout-transform"


def _only_moves(use: KernelUse) -> bool:
    """Tell kernels that copy between tensors of different strides and keep the type, as far as names say."""
    fields = dict(use.identity.fields)
    casts = _CASTING_WRAPPER in use.name or any(label.startswith("converts") for label in fields)
    return use.identity.algorithm == "copy" and fields.get("access", "").startswith("strided") and not casts
