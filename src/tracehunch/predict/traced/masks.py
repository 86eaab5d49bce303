"""Whether a mask may be the causal triangle, as far as a trace shows: its shape, and who makes triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tracehunch.trace.model import Cat
from tracehunch.tree.names import names_that

if TYPE_CHECKING:
    from tracehunch.predict.sdpa import SdpaCall
    from tracehunch.tree import Tree

Causal = Literal["likely", "possible", "no"]
"""A triangle of the mask's size is made in the trace; the mask is square and one for all; neither."""

_TRIANGLES: Final = frozenset({"aten::tril", "aten::tril_", "aten::triu", "aten::triu_"})
_READ: Final = 256  # rows


def triangles(tree: Tree) -> frozenset[tuple[int, int]]:
    """Return the sizes (rows, columns) of the triangles that the trace makes."""
    trace = tree.trace
    rows = np.flatnonzero((trace.cat == Cat.CPU_OP) & names_that(trace, _TRIANGLES.__contains__)[trace.name])
    found = set()
    for row in rows[:_READ].tolist():
        dims = trace.args_of(row).get("Input Dims")
        shape = dims[0] if isinstance(dims, list) and dims else None
        if isinstance(shape, list) and len(shape) >= 2:  # a matrix
            found.add((shape[-2], shape[-1]))
    return frozenset(found)


def may_be_causal(call: SdpaCall, made: frozenset[tuple[int, int]]) -> Causal:
    """Tell whether a call's mask may be the causal triangle; `made` are the sizes of `triangles`.

    A mask of its own for every batch, as padding needs, is none, nor one that is not as tall as wide.
    """
    mask = call.mask
    if mask is None or mask.ndim < 2 or call.is_causal:  # rows and columns
        return "no"
    *outer, length, keys = mask.shape
    shared = all(size == 1 or step == 0 for size, step in zip(outer, mask.stride, strict=False))
    if not shared or not 1 < length == keys == call.q.shape[-2]:
        return "no"
    return "likely" if (length, keys) in made else "possible"
