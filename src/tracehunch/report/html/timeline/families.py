"""What kind of work an event is: it has the event's colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.kernels import COPY_ALGORITHMS, UNCLASSIFIED, classify
from tracehunch.trace.model import Cat

if TYPE_CHECKING:
    from tracehunch.trace.model import Int64
    from tracehunch.verdict import Look

_HOST: Final = {
    Cat.USER_ANNOTATION: "annotation",
    Cat.CPU_OP: "op",
    Cat.PYTHON_FUNCTION: "Python frame",
    Cat.RUNTIME: "runtime or driver call",
    Cat.DRIVER: "runtime or driver call",
    Cat.SYNC: "synchronisation",
    Cat.OVERHEAD: "profiler's own work",
}
_PRODUCT: Final = "matrix product, convolution"
_ATTENTION: Final = "attention"
_POINTWISE: Final = "elementwise"
_ROWS: Final = "norm, softmax, reduction"
_MOVES: Final = "copy, layout, memset"
_OTHER: Final = "other kernel"
_UNKNOWN: Final = "unclassified kernel"
_ALGORITHMS: Final = {
    "gemm": _PRODUCT, "gemv": _PRODUCT, "gemm-helper": _PRODUCT, "splitk-reduce": _PRODUCT,
    "conv": _PRODUCT, "conv-helper": _PRODUCT, "epilogue": _PRODUCT,
    "elementwise": _POINTWISE, "foreach": _POINTWISE, "fill": _POINTWISE, "fused": _POINTWISE,
    "pointwise": _POINTWISE, "optimizer": _POINTWISE,
    "norm": _ROWS, "softmax": _ROWS, "reduce": _ROWS, "reduction": _ROWS, "scan": _ROWS, "loss": _ROWS,
    "collective": "communication",
    UNCLASSIFIED: _UNKNOWN,
}  # fmt: skip

_GPU: Final = (_PRODUCT, _ATTENTION, _POINTWISE, _ROWS, _MOVES, "communication", _OTHER, _UNKNOWN)
FAMILIES: Final = (*dict.fromkeys(_HOST.values()), *_GPU)
"""The words of a legend, the host's before the GPU's."""


def families_of(look: Look, rows: Int64) -> Int64:
    """Return for each row the place of its family in FAMILIES."""
    trace = look.facts.tree.trace
    by_cat = np.full(max(Cat) + 1, FAMILIES.index(_MOVES), dtype=np.int64)
    for cat, word in _HOST.items():
        by_cat[cat] = FAMILIES.index(word)
    return np.where(trace.cat[rows] == Cat.KERNEL, _of_kernels(look)[rows], by_cat[trace.cat[rows]])


def _of_kernels(look: Look) -> Int64:
    """Return the families of kernels by their names, and by how they were launched where that tells more."""
    trace = look.facts.tree.trace
    kernels = trace.rows(Cat.KERNEL)
    by_name = np.zeros(len(trace.names), dtype=np.int64)
    for name in np.unique(trace.name[kernels]).tolist():
        by_name[name] = _family(classify(trace.names[name]).algorithm)
    found = by_name[trace.name]
    whole = next((one for one in look.facts.scopes if one.scope.kind == "whole"), None)
    for use in () if whole is None else whole.kernels:
        found[np.asarray(use.rows, dtype=np.int64)] = _family(use.identity.algorithm)
    return found


def _family(algorithm: str) -> int:
    if algorithm.startswith("attention"):
        return FAMILIES.index(_ATTENTION)
    if algorithm in COPY_ALGORITHMS:
        return FAMILIES.index(_MOVES)
    return FAMILIES.index(_ALGORITHMS.get(algorithm, _OTHER))
