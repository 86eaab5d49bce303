"""Operations that pick elements by index or by mask."""

import math
from typing import Final

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.nonzero import nonzero_steps
from tracehunch.predict.ops.registry import handles
from tracehunch.predict.ops.steps import Call, Steps, copied, fresh, joined, kernel, like, unknown
from tracehunch.predict.ops.tensor import Tensor, broadcast

_VECTOR: Final = 16  # bytes that a row must be a multiple of to be gathered in vectors
_SMALL: Final = 16  # indices up to which index_select reads them in one block
_INT64: Final = 8


@handles("embedding", "index_select")
def embedding(call: Call) -> Steps:
    """Gather rows: one kernel. `embedding` takes (weight, indices)."""
    source, indices = call.first, call.at(1)
    if indices.numel == 0:
        return ()
    dim = call.option("dim", 0)
    each = source.numel // max(source.size(dim), 1)
    return _gather(source, indices, each, small=indices.numel <= _SMALL)


def _gather(source: Tensor, indices: Tensor, each: int, *, small: bool) -> Steps:
    row = each * source.itemsize
    written = indices.numel * row
    moved = written + min(written, source.nbytes) + indices.nbytes
    vectors = row % _VECTOR == 0
    text = "vectorized_gather_kernel" if vectors else "indexSelect" if small else ""
    family = "gather" if vectors else "gather_items"
    return kernel(text, "gather", family, moved, dtype=source.dtype, items=indices.numel * each)


@handles("index")
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
    shape = broadcast(*(one.shape for one in picked))
    count = math.prod(shape)
    if count == 0:
        return ()
    each = source.numel // max(math.prod(source.shape[: len(picked)]), 1)
    if len(picked) == 1:
        return _gather(source, fresh(shape, "int64"), each, small=False)
    moved = 2 * count * each * source.itemsize + count * _INT64
    return kernel("index_elementwise_kernel", "gather", "gather_items", moved, items=count * each)


@handles("gather", "take_along_dim", "take")
def gather(call: Call) -> Steps:
    """Pick by a tensor of indices: one kernel."""
    source, indices = call.first, call.at(1)
    if indices.numel == 0:
        return ()
    moved = 2 * indices.numel * source.itemsize + indices.stored_bytes
    text = "_scatter_gather_elementwise_kernel"
    return kernel(text, "gather", "gather_items", moved, dtype=source.dtype, items=indices.numel)


@handles("scatter_", "scatter_add_", "scatter_reduce_", "index_add_", "index_copy_", "index_fill_")
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


@handles("scatter", "scatter_add", "index_add", "index_copy", "index_fill")
def scatter(call: Call) -> Steps:
    """Copy, then write by index."""
    copy = copied(call.first, like([call.first], call.first.dtype))
    return joined([copy, scatter_in_place(call)])


@handles("index_put_", "index_put")
def index_put(call: Call) -> Steps:
    """Write by tensors of indices: one kernel, unless values accumulate, which sorts the indices."""
    if call.option("accumulate"):
        return unknown("index_put with accumulate sorts the indices: how many kernels, was not measured")
    values = call.tensors[-1]
    copy = copied(call.first, like([call.first], call.first.dtype)) if call.name == "index_put" else ()
    return joined(
        [
            copy,
            kernel(
                "index_elementwise_kernel",
                "scatter",
                "scatter",
                2 * values.nbytes,
                dtype=call.first.dtype,
                items=values.numel,
            ),
        ]
    )


@handles("nonzero", "argwhere")
def nonzero(call: Call) -> Steps:
    """Count, tell the host, and write the indices."""
    return nonzero_steps(call.first)


@handles("masked_select")
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


@handles("embedding_dense_backward")
def embedding_backward(call: Call) -> Steps:
    """Fill the gradient with zeros and add up rows; many indices are sorted first."""
    grad, indices = call.first, call.at(1)
    rows = int(call.option("num_weights", 0))
    if indices.numel > 3072:  # indices up to which one kernel does it
        return unknown(
            "with more than 3072 indices they are sorted first: how many kernels, was not measured"
        )
    weight = fresh((rows, grad.size(-1)), grad.dtype)
    added = kernel(
        "embedding_backward_feature_kernel",
        "scatter",
        "scatter",
        grad.nbytes + indices.nbytes,
        dtype=grad.dtype,
        items=grad.numel,
    )
    return joined([fill_kernel(weight), added])
