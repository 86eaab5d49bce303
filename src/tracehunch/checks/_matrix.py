"""Matrix products among activities, and the unit of the GPU that they ran on."""

from typing import Any, Final

import numpy as np

from tracehunch.checks._activities import uses
from tracehunch.checks._once import once
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.kernels.identity import Identity
from tracehunch.trace.model import Int64
from tracehunch.tree.names import names_that

MATRIX_ALGORITHMS: Final = frozenset({"gemm", "conv"})
"""Products of matrices proper; one of a matrix and a vector (gemv) is bound by memory on any unit."""
_CPU_PRODUCTS: Final = frozenset({"aten::bmm", "aten::mm", "aten::addmm", "aten::baddbmm"})


def is_matrix_kernel(use: KernelUse) -> bool:
    """Whether a GPU activity is a matrix product or a convolution."""
    return use.kind == "kernel" and use.identity.algorithm in MATRIX_ALGORITHMS


def matrix_products(facts: Facts, rows: Any) -> Int64:
    """Pick the matrix kernels among GPU rows, or the matrix ops among ops."""
    names = {use.name for use in uses(facts) if is_matrix_kernel(use)} | _CPU_PRODUCTS
    chosen = np.asarray(rows, dtype=np.int64)
    trace = facts.tree.trace
    return chosen[names_that(trace, names.__contains__)[trace.name[chosen]]]


def identity_of(facts: Facts, row: int) -> Identity | None:
    """Look up what the name of a kernel row says."""
    return _identities(facts).get(facts.tree.trace.name_of(row))


@once
def _identities(facts: Facts) -> dict[str, Identity]:
    return {use.name: use.identity for use in reversed(uses(facts))}


def unit_of(facts: Facts, row: int) -> str:
    """Say which unit (tensor cores, CUDA cores ...) a kernel row runs on, as far as its name tells."""
    identity = identity_of(facts, row)
    return "unknown" if identity is None else identity.unit
