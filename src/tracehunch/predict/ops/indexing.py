"""Operations that pick elements by index or by mask."""

import math
from typing import Final

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.nonzero import nonzero_steps
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.sorting import onesweep, sorted_keys
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    copied,
    fresh,
    joined,
    kernel,
    like,
    pointwise,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor, broadcast

_VECTOR: Final = 16  # bytes that a row must be a multiple of to be gathered in vectors
_SMALL: Final = 16  # indices up to which index_select reads them in one block
_INT64: Final = 8
_UNSORTED: Final = 3072  # indices up to which the gradient of an embedding is added up by one kernel
_FEW_ROWS: Final = 1000


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
    family = "gather" if vectors else "gather_few_rows" if small else "gather_items"
    return kernel(text, "gather", family, moved, dtype=source.dtype, items=indices.numel * each)


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
    each = source.numel // max(math.prod(source.shape[: len(picked)]), 1)
    if len(picked) == 1:
        return _gather(source, fresh(shape, "int64"), each, small=False)
    moved = 2 * count * each * source.itemsize + count * _INT64
    return kernel("index_elementwise_kernel", "gather", "gather_items", moved, items=count * each)


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


def index_put(call: Call) -> Steps:
    """Write by tensors of indices: one kernel, unless values accumulate, which sorts the indices."""
    if call.option("accumulate"):
        return _accumulated(call)
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


def _accumulated(call: Call) -> Steps:
    """Check the indices' range, sort them, and add up the values of each: for one tensor of indices."""
    if len(call.tensors) != 3 or call.at(1).dtype == "bool":  # self, index, values
        return unknown("index_put with accumulate was looked at for one tensor of indices")
    one, indices, values = call.tensors
    number, scalar = fresh(indices.shape, "int64"), fresh((), "int64")
    check = [
        reduction(indices, tuple(range(len(indices.shape))), call.sms),
        pointwise("compare_scalar_kernel", fresh((), "bool"), [scalar]),
        kernel("_assert_async_cuda_kernel", "assert", "tiny", 0),
    ]
    linear = [pointwise(text, number, [number]) for text in ("remainder_kernel", "MulFunctor", "div_trunc")]
    counted = kernel("elementwise_kernel_with_index", "index", "fill", number.nbytes)
    added = kernel(
        "indexing_backward_kernel",
        "scatter",
        "scatter_equal",
        3 * values.nbytes,
        dtype=one.dtype,
        items=values.numel,
        serial=-(-indices.numel // max(one.size(0), 1)),
    )
    return joined(
        [*check, *check, *linear, counted, sorted_keys(indices.numel, max(one.size(0) - 1, 1)), added]
    )


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


def embedding_backward(call: Call) -> Steps:
    """Clear the gradient and add rows up: many indices are sorted first, and equal ones added in parts."""
    grad, indices = call.first, call.at(1)
    rows = int(call.option("num_weights", 0))
    weight = fresh((rows, grad.size(-1)), grad.dtype)
    if indices.numel <= _UNSORTED:
        added = kernel(
            "embedding_backward_feature_kernel", "scatter", "scatter_rows", grad.nbytes + indices.nbytes,
            dtype=grad.dtype, items=grad.numel, serial=indices.numel,
        )  # fmt: skip
        return joined([fill_kernel(weight), added])
    if rows < _FEW_ROWS:
        return unknown("where few rows take many indices, how many kernels add them up was not worked out")
    small = [
        "DeviceCompactInitKernel", "DeviceUniqueByKeySweepKernel", "krn_partials_per_segment",
        "DeviceScanInitKernel", "DeviceScanKernel", "compute_num_of_partial_segments",
        "krn_partial_segment_offset",
    ]  # fmt: skip
    sums = [
        kernel(text, "scatter", "scatter_sorted", moved, dtype=grad.dtype, items=grad.numel)
        for text, moved in (("compute_grad_weight", grad.nbytes), ("sum_and_scatter", 2 * grad.nbytes))
    ]
    return joined(
        [
            kernel("elementwise_kernel_with_index", "index", "fill", indices.nbytes),
            onesweep(8 * _INT64, 2 * indices.nbytes),
            fill_kernel(weight),
            *[kernel(text, "scan", "tiny", 0) for text in small],
            *sums,
        ]
    )
