"""Matrix products among ops: their sizes, as far as shapes were recorded."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tracehunch.checks._ancestry import called_op
from tracehunch.trace.model import Cat, Int64, Trace
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import names_that

BATCHED: Final = frozenset({"aten::bmm", "aten::baddbmm"})
_FIRST_OPERAND: Final = {
    "aten::bmm": 0,
    "aten::mm": 0,
    "aten::baddbmm": 1,
    "aten::addmm": 1,
    "aten::_addmm_activation": 1,
}
_OF_ACTIVATIONS: Final = frozenset({"aten::bmm", "aten::mm", "aten::baddbmm"})
LAYER: Final = "aten::linear"


@dataclass(frozen=True, slots=True)
class Product:
    """A (batch, rows, inner) times (batch, inner, columns) product; batch is 1 for matrices."""

    batch: int
    rows: int
    inner: int
    columns: int
    dtype: str  # as recorded, "" where it was not

    @property
    def result(self) -> int:
        """Elements of the result."""
        return self.batch * self.rows * self.columns

    @property
    def flops(self) -> int:
        """A multiply and an add for each element of the inner dimension."""
        return 2 * self.result * self.inner

    def least_bytes(self, element_bytes: int) -> int:
        """Bytes of both operands and the result, each moved once."""
        return element_bytes * (self.batch * self.inner * (self.rows + self.columns) + self.result)


def product_rows(tree: Tree) -> Int64:
    """Find the ops that multiply two operands which both may be activations: no layer with a weight."""
    trace = tree.trace
    named = names_that(trace, _OF_ACTIVATIONS.__contains__)
    rows = np.flatnonzero((trace.cat == Cat.CPU_OP) & named[trace.name])
    rows = rows[~_around_itself(tree, rows)]
    called = called_op(tree, rows)
    layer = names_that(trace, LAYER.__eq__)
    found: Int64 = rows[(called == NONE) | ~layer[trace.name[called]]]
    return found


def product_of(trace: Trace, row: int) -> Product | None:
    """Read the sizes of an op that is a product; None where they were not recorded or make no sense."""
    first = _FIRST_OPERAND.get(trace.name_of(row))
    if first is None:
        return None
    given = trace.input_of(row)
    dims, types = given.dims, given.types
    if not isinstance(dims, list) or len(dims) < first + 2:
        return None
    left, right = sizes(dims[first]), sizes(dims[first + 1])
    if len(left) != len(right) or len(left) not in (2, 3) or left[-1] != right[-2]:
        return None
    batch = left[0] if len(left) == 3 else 1
    dtype = str(types[first]) if isinstance(types, list) and len(types) > first else ""
    return Product(batch, left[-2], left[-1], right[-1], dtype)


def sizes(entry: Any) -> tuple[int, ...]:
    """Return a tensor's recorded sizes; () for all that is no tensor."""
    if isinstance(entry, list) and all(isinstance(size, int) for size in entry):
        return tuple(entry)
    return ()


def elements(entry: Any) -> int:
    """Return the number of elements of a tensor; 0 for all that is no tensor."""
    shape = sizes(entry)
    return math.prod(shape) if shape else 0


def _around_itself(tree: Tree, rows: Int64) -> Any:
    """Tell ops that contain one of the same name, as a dispatch mode shows them twice."""
    trace, outer = tree.trace, np.zeros(rows.size, dtype=bool)
    above = tree.parent[rows].astype(np.int64)
    for _ in range(2):  # the mode's own row may lie between
        same = (above != NONE) & (trace.name[above] == trace.name[rows]) & (trace.cat[above] == Cat.CPU_OP)
        outer |= np.isin(rows, above[same])
        above = np.where(above == NONE, NONE, tree.parent[above])
    return outer
