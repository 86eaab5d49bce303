"""Attention masks on their way to a backend: booleans become additive, rows are padded to an alignment."""

from dataclasses import replace
from typing import Final

from tracehunch.predict.attention import kernels
from tracehunch.predict.attention.program import SCALAR, Program, UntoldError
from tracehunch.predict.attention.views import Sizes, expanded, fresh
from tracehunch.predict.sdpa.tensor import TensorSpec

ALIGNMENT: Final = 8
"""Elements, of any data type, of which the efficient kernels want rows of the mask to be a multiple."""


def as_bias(program: Program, mask: TensorSpec, dtype: str) -> TensorSpec:
    """Return the mask as it is added to the scores: 0 or -inf of q's data type in place of a boolean.

    Two numbers are put on the GPU and chosen between: fill, fill, where. In deterministic mode each number's
    memory is filled before, and two more fills come with them (six in all, H200).
    """
    if mask.dtype != "bool":
        return mask
    for op in ("aten::scalar_tensor", "aten::where"):
        program.filled(SCALAR, dtype, op)
        program.empty(dtype, "aten::where")
    number = expanded(fresh(SCALAR, dtype), mask.shape)
    choose = kernels.elementwise("where_kernel_impl", None, "aten::where")
    return program.pointwise(choose, [mask, number, number], "choose", dtype=dtype)


def padded(program: Program, t: TensorSpec, multiple: int) -> TensorSpec:
    """Return the tensor with its last dimension filled up to a multiple: a fill, and a copy into it."""
    short = -t.shape[-1] % multiple
    if not short:
        return t
    op = "aten::constant_pad_nd"
    whole = program.filled((*t.shape[:-1], t.shape[-1] + short), t.dtype, op)
    program.copied(t, replace(whole, shape=t.shape))
    return whole


def for_efficient(program: Program, mask: TensorSpec, dtype: str) -> TensorSpec:
    """Return the mask as the efficient backend takes it; expanding it to all heads is a view."""
    if not mask.shape:
        raise UntoldError("what the efficient backend does with a mask without dimensions is not known")
    bias = as_bias(program, mask, dtype)
    whole = padded(program, bias, ALIGNMENT)
    return replace(whole, shape=bias.shape)


def mask_gradient(program: Program, mask: TensorSpec, scores: Sizes) -> None:
    """Bring the gradient that the efficient kernel leaves to a mask's shape: sum heads, undo the padding."""
    if expanded(mask, scores).numel != mask.numel:
        program.summed(fresh(scores, mask.dtype), mask.numel)
    short = -mask.shape[-1] % ALIGNMENT
    if short:
        wide = (*mask.shape[:-1], mask.shape[-1] + short)
        zeros = program.filled(wide, mask.dtype, "aten::slice_backward")
        program.copied(fresh(mask.shape, mask.dtype), replace(zeros, shape=mask.shape))
        program.row_major(replace(zeros, shape=mask.shape))
