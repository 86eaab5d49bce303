"""Grids of coordinates, and rounding to fewer values: what ATen composes of steps of its own.

Sources: ATen/native/AffineGridGenerator.cpp, and FakeQuantPerChannelAffine.cpp in ATen/native/quantized.
"""

from typing import Final

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.products import matmul
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    copied,
    fresh,
    joined,
    kernel,
    memcpy,
    pointwise,
    under,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor

_BESIDE: Final = 1
"""Coordinates of a point besides its place: a one, by which the map's shift is multiplied."""


def affine_grid(call: Call) -> Steps:
    """Place points evenly, beside ones, and multiply them by each map; backward by the gradient instead."""
    size = call.option("size")
    if size is None:
        return unknown(f"the size of the grid is not among {call.name}'s arguments")
    count, _, *sides = size
    base = fresh((count, *sides, len(sides) + _BESIDE), call.first.dtype)
    step = base.shape[-1]
    column = Tensor(base.shape[:-1], base.dtype, tuple(base.strides[:-1]))
    made = [
        part for side in reversed(sides) for part in (_line(call, side), copied(_row(side, base), column))
    ]
    points = base.viewed((count, -(-base.numel // (count * step)), step)) if base.numel else None
    if points is None:
        return ()
    if call.name.endswith("_backward"):
        grad = fresh((count, points.shape[1], len(sides)), base.dtype)
        product = matmul(Call("matmul", (points.transposed(), grad), {}, call.env))
    else:
        product = matmul(Call("matmul", (points, call.first.transposed()), {}, call.env))
    return joined([*made, fill_kernel(column), under("aten::bmm", product)])


def _row(side: int, base: Tensor) -> Tensor:
    line = fresh((side,), base.dtype)
    return line.expanded(base.shape[:-1])


def _line(call: Call, side: int) -> Steps:
    """Return the steps to numbers from -1 to 1, a little closer where corners are not aligned."""
    line = fresh((side,), call.first.dtype)
    if side <= 1:
        return fill_kernel(line)
    spaced = kernel("elementwise_kernel_with_index", "index", "fill", line.nbytes, dtype=line.dtype)
    closer = () if call.option("align_corners") else ("mul", "div")
    return joined(
        [
            under("aten::linspace", spaced),
            *(under(f"aten::{op}", pointwise("", line, [line])) for op in closer),
        ]
    )


def rounded_by_channel(call: Call) -> Steps:
    """Look whether all zero points are in range, on the host; then mark what is, and round."""
    one, zeros = call.first, call.at(2)
    checked: list[Steps] = []
    if zeros.dtype not in ("fp32", "fp16"):
        for extreme in ("min", "max"):
            found = reduction(zeros, (0,), call.sms, name=extreme)
            checked += [
                under(f"aten::{extreme}", found),
                under("aten::_local_scalar_dense", memcpy("dtoh", zeros.itemsize)),
            ]
    marks = fresh(one.shape, "bool")
    each = [pointwise("", out, [one], flops=2) for out in (marks, one)]
    return joined([*checked, *each])
