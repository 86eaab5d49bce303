"""In what two kernels of the same op differ, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.tree import NONE
from tracehunch.units import count, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Use
    from tracehunch.kernels.identity import Identity
    from tracehunch.trace.model import Trace

_UNITS: Final = {
    "tensor-core": "on tensor cores",
    "cuda-core": "on CUDA cores",
    "mfma": "on matrix cores",
    "vector": "on vector units",
}
_FIELDS: Final = 4
_UNTOLD: Final = ("rasterisation",)  # fields that say nothing to most people


def identity_words(identity: Identity | None) -> str:
    """``cublas gemm bf16 on tensor cores``."""
    if identity is None or not identity.classified:
        return "a kernel that no rule knows"
    library = "" if identity.library == "driver" else identity.library
    words = [library, identity.algorithm, identity.dtype or "", _UNITS.get(identity.unit, "")]
    return " ".join(word for word in words if word)


def kernel_difference(before: Sequence[Use], after: Sequence[Use]) -> str:
    """Say in what the kernels of both sides differ: their kind, else the details of their names."""
    first, second = _kinds(before), _kinds(after)
    if not first or not second:
        return ""
    if first != second:
        return f"{join(first)} -> {join(second)}"
    if len(before) == len(after) == 1:
        return _fields(before[0].identity, after[0].identity)
    return ""


def blocks(trace: Trace, uses: Sequence[Use]) -> int | None:
    """Thread blocks of a launch, the median; None where not recorded."""
    wanted = [row for use in uses if use.kind == "kernel" for row in use.rows]
    at = np.flatnonzero(np.isin(trace.gpu.row, wanted))
    grids = trace.gpu.grid[at]
    grids = grids[(grids != NONE).all(axis=1)] if grids.size else grids
    return int(np.sort(grids.prod(axis=1))[(len(grids) - 1) // 2]) if len(grids) else None


def blocks_words(before: int | None, after: int | None) -> str:
    """``1,024 -> 2,048 thread blocks a launch``; "" where they agree, or one side does not tell."""
    if before is None or after is None or before == after:
        return ""
    return f"{count(before)} -> {count(after)} thread blocks a launch"


def _kinds(uses: Sequence[Use]) -> list[str]:
    return list(dict.fromkeys(identity_words(use.identity) for use in uses if use.kind == "kernel"))


def _fields(before: Identity | None, after: Identity | None) -> str:
    if before is None or after is None:
        return ""
    first, second = dict(before.fields), dict(after.fields)
    changed = [
        f"{name} {first.get(name, 'none')} -> {second.get(name, 'none')}"
        for name in dict.fromkeys((*first, *second))
        if first.get(name) != second.get(name) and name not in _UNTOLD
    ]
    return ", ".join(changed[:_FIELDS])
