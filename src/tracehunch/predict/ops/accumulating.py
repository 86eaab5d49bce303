"""Writing and adding by tensors of indices: what sorts indices first, so that equal ones add up in turn."""

import math
from typing import Final

from tracehunch.predict.ops.dtypes import HALF
from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.indexing import alike
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
    under,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor

_INT64: Final = 8
_UNSORTED: Final = 3072  # indices up to which the gradient of an embedding is added up by one kernel
_CROWDED: Final = 16  # indices a row above which parts of rows are added up atomically ...
_FEW_ROWS: Final = 768  # ... into no more rows than this ...
_NARROW: Final = 2048  # ... of no more elements; all seen from outside
_MASKS: Final = ("bool", "uint8")


def index_put(call: Call) -> Steps:
    """Write by tensors of indices: one kernel, unless values accumulate, which sorts the indices.

    Masks are turned into indices first, counted on the host.
    """
    one, *indices, values = call.tensors
    if not indices:
        return unknown("the sizes of the indices were not recorded")
    functional = call.name in ("index_put", "_unsafe_index_put")
    before = [copied(one, like([one], one.dtype)) if functional else ()]
    before += [nonzero_steps(mask) for mask in indices if mask.dtype in _MASKS]
    before.append(alike([index for index in indices if index.dtype not in _MASKS]))
    count = max((_count(index) for index in indices), default=0)
    if count == 0 or one.numel == 0:
        return joined(before)
    if call.option("accumulate"):
        checked = not (call.option("unsafe") or call.name.startswith("_unsafe"))
        return joined([*before, _accumulated(one, indices, values, call.sms, checked=checked)])
    items = max(values.numel, count)
    moved = 2 * items * one.itemsize + count * _INT64
    put = kernel("index_elementwise_kernel", "scatter", "scatter", moved, dtype=one.dtype, items=items)
    return joined([*before, put])


def _count(index: Tensor) -> int:
    return index.numel // 2 if index.dtype in _MASKS else index.numel


def _accumulated(one: Tensor, indices: list[Tensor], values: Tensor, sms: int, *, checked: bool) -> Steps:
    """Check each index's range, make one number of them all, sort these, and add up the values of each."""
    number = fresh((max(_count(index) for index in indices),), "int64")
    each = [fresh((_count(index),), "int64") for index in indices]
    made = [part for index in each for part in (*_checks(index, sms, checked=checked), _numbered(index))]
    sums = [under("aten::add_", pointwise("CUDAFunctor_add", number, [number, number]))] * (len(indices) - 1)
    rows = math.prod(one.shape[: len(indices)])
    added = kernel(
        "indexing_backward_kernel", "scatter", "scatter_equal", 3 * values.nbytes, dtype=one.dtype,
        items=values.numel, serial=-(-number.numel // max(rows, 1)),
    )  # fmt: skip
    ready = [
        under("aten::div_", pointwise("div_trunc", number, [number])),
        under("aten::arange", kernel("elementwise_kernel_with_index", "index", "fill", number.nbytes)),
    ]
    return joined([*made, *sums, *ready, sorted_keys(number.numel, max(rows - 1, 1)), added])


def _checks(index: Tensor, sms: int, *, checked: bool) -> list[Steps]:
    """Check that an index is within its dimension; the backward of indexing does not, its forward has."""
    if not checked:
        return []
    scalar, found = fresh((), "int64"), reduction(index, tuple(range(len(index.shape))), sms)
    return [
        one
        for extreme, compare in (("max", "lt"), ("min", "ge"))
        for one in (
            under(f"aten::{extreme}", found),
            under(f"aten::{compare}", pointwise("compare_scalar_kernel", fresh((), "bool"), [scalar])),
            under("aten::_assert_async", kernel("_assert_async_cuda_kernel", "assert", "tiny", 0)),
        )
    ]


def _numbered(index: Tensor) -> Steps:
    """Wrap negative indices and multiply by the stride."""
    return joined(
        under(f"aten::{op}", pointwise(text, index, [index]))
        for text, op in (("remainder_kernel", "remainder"), ("MulFunctor", "mul"))
    )


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
    small = [
        "DeviceCompactInitKernel", "DeviceUniqueByKeySweepKernel", "krn_partials_per_segment",
        "DeviceScanInitKernel", "DeviceScanKernel", "compute_num_of_partial_segments",
        "krn_partial_segment_offset",
    ]  # fmt: skip
    numbers = kernel("elementwise_kernel_with_index", "index", "fill", indices.nbytes)
    return joined(
        [
            under("aten::arange", numbers),
            onesweep(8 * _INT64, 2 * indices.nbytes),
            fill_kernel(weight),
            *[kernel(text, "scan", "tiny", 0) for text in small],
            _summed(grad, weight, crowded=_crowded(indices.numel, weight)),
        ]
    )


def _crowded(count: int, weight: Tensor) -> bool:
    rows, columns = weight.shape
    return count > _CROWDED * rows and rows <= _FEW_ROWS and columns <= _NARROW


def _summed(grad: Tensor, weight: Tensor, *, crowded: bool) -> Steps:
    """Add up sorted rows: in parts and then those, or atomically where each row has many."""
    wide = fresh(weight.shape, "fp32")
    names = ("krn_partial_to_segment_idx", "compute_grad_weight_atomic") if crowded else ()
    names = names or ("compute_grad_weight", "sum_and_scatter")
    moves = (0, 2 * grad.nbytes) if crowded else (grad.nbytes, 2 * grad.nbytes)
    sums = [
        kernel(
            text, "scatter", "scatter_sorted" if moved else "tiny", moved, dtype=grad.dtype, items=grad.numel
        )
        for text, moved in zip(names, moves, strict=True)
    ]
    if not crowded or grad.dtype not in HALF:
        return joined(sums)
    return joined([sums[0], fill_kernel(wide), sums[1], copied(wide, weight)])
