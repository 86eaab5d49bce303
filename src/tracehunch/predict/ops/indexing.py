"""Operations that pick elements by index or by mask."""

import math
from collections.abc import Sequence
from typing import Final

from tracehunch.predict.ops.nonzero import nonzero_steps
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    contiguous,
    copied,
    fresh,
    joined,
    kernel,
    like,
    under,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor, broadcast

_VECTOR: Final = 16  # bytes that a row must be a multiple of to be gathered in vectors
_BLOCK: Final = 768  # elements that a block of the vectorised kernel takes as long for, however few they are
_SMALL: Final = 16  # indices up to which index_select reads them in one block
_INT64: Final = 8


def embedding(call: Call) -> Steps:
    """Gather rows: one kernel. `embedding` takes (weight, indices)."""
    source, indices = call.first, call.at(1)
    if indices.numel == 0:
        return ()
    dim = call.option("dim", 0)
    each = source.numel // max(source.size(dim), 1)
    flat = () if indices.viewed((indices.numel,)) is not None else contiguous(indices)[0]
    gathered = _gather(source, indices, each, small=indices.numel <= _SMALL)
    vectors = gathered[0].family == "gather"
    return joined([flat, under("aten::gather", gathered) if vectors else gathered])


def _gather(source: Tensor, indices: Tensor, each: int, *, small: bool) -> Steps:
    row = each * source.itemsize
    written = indices.numel * row
    moved = written + min(written, source.nbytes) + indices.nbytes
    vectors = row % _VECTOR == 0
    text = "indexSelectSmallIndex" if small else "vectorized_gather_kernel" if vectors else ""
    family = "gather_few_rows" if small else "gather" if vectors else "gather_items"
    items = indices.numel * (max(each, _BLOCK) if vectors and not small else each)
    return kernel(text, "gather", family, moved, dtype=source.dtype, items=items)


def index(call: Call) -> Steps:
    """Gather by tensors of indices; masks are turned into indices first, counted on the host."""
    source, *indices = call.tensors
    picked = [one for one in indices if one.dtype not in ("bool", "uint8")]
    masks = [one for one in indices if one.dtype in ("bool", "uint8")]
    if masks:
        per = source.numel // max(masks[0].numel, 1)
        count = masks[0].numel // 2
        moved = 2 * count * per * source.itemsize + count * _INT64
        gathered = kernel("index_elementwise_kernel", "gather", "gather_items", moved, items=count * per)
        return joined([*(nonzero_steps(one) for one in masks), gathered])
    if not picked:
        return unknown("the sizes of the indices were not recorded")
    shape = broadcast(*(one.shape for one in picked))
    count = math.prod(shape)
    if count == 0:
        return ()
    dims = _indexed(call, len(picked))
    each = source.numel // max(math.prod(source.shape[dim] for dim in dims), 1)
    if dims == (0,):
        return _gather(source, fresh(shape, "int64"), each, small=False)
    moved = 2 * count * each * source.itemsize + count * _INT64
    run = kernel("index_elementwise_kernel", "gather", "gather_items", moved, items=count * each)
    return joined([alike(picked), run])


def alike(indices: Sequence[Tensor]) -> Steps:
    """Copy tensors of indices that differ in strides once they are broadcast: a kernel takes them alike.

    Source: `AdvancedIndex` in ATen/native/TensorAdvancedIndexing.cpp.
    """
    shape = broadcast(*(one.shape for one in indices))
    seen = [one.expanded(shape) for one in indices]
    if len({one.strides for one in seen}) < 2:  # all have the same
        return ()
    return joined(contiguous(one)[0] for one in seen)


def gather(call: Call) -> Steps:
    """Pick by a tensor of indices: one kernel."""
    source, indices = call.first, call.at(1)
    if indices.numel == 0:
        return ()
    moved = 2 * indices.numel * source.itemsize + indices.stored_bytes
    text = "_scatter_gather_elementwise_kernel"
    return kernel(text, "gather", "gather_items", moved, dtype=source.dtype, items=indices.numel)


def scatter_in_place(call: Call) -> Steps:
    """Write by index in place: one kernel."""
    indices = call.at(1)
    source = call.tensors[2] if len(call.tensors) > 2 else indices  # self, index, source
    moved = 2 * source.numel * call.first.itemsize + indices.nbytes
    return (
        kernel("", "scatter", "scatter", moved, dtype=call.first.dtype, items=source.numel)
        if indices.numel
        else ()
    )


def scatter(call: Call) -> Steps:
    """Copy, then write by index."""
    copy = copied(call.first, like([call.first], call.first.dtype))
    return joined([copy, scatter_in_place(call)])


def nonzero(call: Call) -> Steps:
    """Count, tell the host, and write the indices."""
    return nonzero_steps(call.first)


def masked_select(call: Call) -> Steps:
    """Turn the mask into indices, then gather."""
    source, mask = call.first, call.at(1)
    count = mask.numel // 2
    picked = kernel(
        "index_elementwise_kernel",
        "gather",
        "gather_items",
        count * (2 * source.itemsize + _INT64),
        items=count,
    )
    return joined([nonzero_steps(mask), picked])


def _indexed(call: Call, count: int) -> tuple[int, ...]:
    """Return the dimensions that tensors of indices stand for."""
    absent = dict(call.option("list_absent") or {}).get("indices", ())
    return tuple(dim for dim in range(count + len(absent)) if dim not in absent)
