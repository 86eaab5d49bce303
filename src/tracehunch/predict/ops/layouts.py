"""Operations that put tensors together, repeat them or move their elements about."""

import math
from typing import Final

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.steps import (
    COPY,
    Call,
    Steps,
    contiguous,
    copied,
    fresh,
    joined,
    kernel,
    pointwise,
    under,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor, promoted

_BATCH: Final = 128  # inputs that one kernel of cat takes
_DIMS: Final = 4  # dimensions that it can deal with


def cat(call: Call) -> Steps:
    """Concatenate: one kernel for up to 128 inputs of one type, else a copy of each."""
    dim = {"vstack": 0, "row_stack": 0, "hstack": 1, "column_stack": 1}.get(call.name, call.option("dim", 0))
    parts = tuple(one for one in call.tensors if one.numel)
    if not parts:
        return ()
    axis = dim % max(len(parts[0].shape), 1)
    shape = list(parts[0].shape)
    shape[axis] = sum(one.shape[axis] for one in parts)
    out = fresh(shape, promoted(*parts))
    if len(shape) <= _DIMS and len({one.dtype for one in parts}) == 1:
        return _together(parts, out)
    if len(parts) == 1:
        return copied(parts[0], out)
    return joined(copied(one, out.narrowed(axis, one.shape[axis])) for one in parts)


def _together(parts: tuple[Tensor, ...], out: Tensor) -> Steps:
    calls = -(-len(parts) // _BATCH)
    read = sum(one.stored_bytes for one in parts)
    family = "cat" if all(one.is_contiguous for one in parts) else "cat_strided"
    each = kernel(
        "CatArrayBatchedCopy",
        "cat",
        family,
        (read + out.nbytes) // calls,
        dtype=out.dtype,
        items=out.numel // calls,
    )
    return each * calls


def stack(call: Call) -> Steps:
    """Concatenate along a new dimension."""
    if not call.tensors or call.first.numel == 0:
        return ()
    count = len(call.tensors)
    return _together(call.tensors, fresh((count, *call.first.shape), promoted(*call.tensors)))


def repeat(call: Call) -> Steps:
    """Write the tensor several times: one kernel."""
    times = math.prod(call.option("repeats", call.option("dims", (1,))))
    return _spread(call.first, times)


def repeat_interleave(call: Call) -> Steps:
    """Write each slice several times: expand and copy, one kernel."""
    return _spread(call.first, int(call.option("repeats", 1)))


def _spread(one: Tensor, times: int) -> Steps:
    if one.numel * times == 0:
        return ()
    moved = one.nbytes * (1 + times)
    run = kernel(
        "direct_copy_kernel_cuda", "copy", "strided", moved, dtype=one.dtype, items=one.numel * times
    )
    return under(COPY, run)


def moved_about(call: Call) -> Steps:
    """Write elements in another order: one kernel."""
    one = call.first
    return (
        kernel("", "elementwise", "strided", 2 * one.nbytes, dtype=one.dtype, items=one.numel)
        if one.numel
        else ()
    )


def pad(call: Call) -> Steps:
    """Fill the larger tensor, then copy into its middle; a memcpy where that is one run of memory.

    Where nothing is added, as in the gradient of a padding, what is left is copied alone.
    """
    one = call.first
    amounts = tuple(call.option("pad", ()))
    shape = list(one.shape)
    for index in range(len(amounts) // 2):
        shape[-1 - index] += amounts[2 * index] + amounts[2 * index + 1]
    out = fresh(shape, one.dtype)
    if all(amount <= 0 for amount in amounts):
        for dim, size in enumerate(shape):
            one = one.narrowed(dim, size)
        return copied(one, out)
    middle = out
    for dim, size in enumerate(one.shape):
        middle = middle.narrowed(dim, min(size, shape[dim]))
    return joined([fill_kernel(out), copied(one, middle)])


def placed_back(call: Call) -> Steps:
    """Fill the whole with zeros, then write the gradient of a part into it.

    The first tensor is the gradient, `input_sizes` the shape of the whole.
    """
    grad = call.first
    sizes = tuple(call.option("input_sizes", ()))
    if not sizes:
        return unknown(f"the sizes of the whole are not among {call.name}'s arguments")
    whole = fresh(sizes, grad.dtype)
    part = whole
    if len(grad.shape) == len(sizes) - 1:
        part = whole.selected(int(call.option("dim", 0)), int(call.option("index", 0)))
    else:
        for dim, size in enumerate(grad.shape):
            part = part.narrowed(dim, size)
    return joined([fill_kernel(whole), copied(grad, part)])


def diagonal_placed(call: Call) -> Steps:
    """Fill the whole with zeros, then write a diagonal of it: `diag_embed`, and what derives `diagonal`."""
    diagonal = call.first
    sizes = call.option("input_sizes") or (call.outputs[0].shape if call.outputs else ())
    if not sizes:
        return unknown(f"the sizes of the whole are not among {call.name}'s arguments")
    whole = fresh(sizes, diagonal.dtype)
    apart = Tensor(diagonal.shape, diagonal.dtype, tuple(step * whole.size(-1) for step in diagonal.strides))
    return joined([fill_kernel(whole), copied(diagonal, apart)])


def reshape_copy(call: Call) -> Steps:
    """Copy to row-major order."""
    return contiguous(call.first)[0]


def one_hot(call: Call) -> Steps:
    """Fill with zeros, then scatter ones, where the number of classes is given."""
    classes = int(call.option("num_classes", 0))
    out = fresh((*call.first.shape, max(classes, 1)), "int64")
    scatter = kernel(
        "_scatter_gather_elementwise_kernel",
        "scatter",
        "gather_items",
        3 * call.first.nbytes,
        dtype="int64",
        items=call.first.numel,
    )
    return joined([fill_kernel(out), scatter])


def glu(call: Call) -> Steps:
    """Multiply one half by the sigmoid of the other: one kernel."""
    one = call.first
    half = fresh((*one.shape[:-1], one.shape[-1] // 2), one.dtype)
    return pointwise("", half, (half, half), flops=4)
