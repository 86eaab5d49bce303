"""Operations that ATen composes of several launches of others."""

import math
from typing import Final

from tracehunch.predict.ops.dtypes import FLOATING
from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.reductions import all_any, reduction
from tracehunch.predict.ops.sorting import sorted_keys
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    copied,
    fresh,
    joined,
    kernel,
    like,
    memcpy,
    pointwise,
    under,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor, broadcast

_INT64: Final = 8
_FACTOR, _POWER = 10, 0.145  # of isin: how many are compared one by one
_TINY_SORT: Final = 2304  # keys that one block sorts


def isin(call: Call) -> Steps:
    """Compare each element with each of a few; many are sorted, which was not looked at."""
    one = call.first
    if len(call.tensors) < 2:  # a number to be compared with
        return under("aten::eq", pointwise("CompareEqFunctor", fresh(one.shape, "bool"), [one]))
    tests = call.at(1)
    if one.numel == 0:
        return ()
    if tests.numel >= _FACTOR * one.numel**_POWER:
        return unknown("isin with as many elements sorts them, which was not looked at")
    pairs = fresh((*one.shape, tests.numel), "bool")
    result = fresh(one.shape, "bool")
    compared = pointwise("CompareEqFunctor", pairs, [one.viewed((*one.shape, 1)) or one, tests])
    found = all_any(Call("any", (pairs,), {"dim": -1}, call.env))
    return joined(
        [fill_kernel(result), under("aten::eq", compared), under("aten::any", found), copied(result, result)]
    )


def equal(call: Call) -> Steps:
    """Compare, reduce to one, and tell the host."""
    one = call.first
    flags = fresh(one.shape, "bool")
    return joined(
        [
            under("aten::eq", pointwise("CompareEqFunctor", flags, call.tensors)),
            under("aten::all", all_any(Call("all", (flags,), {}, call.env))),
            under("aten::_local_scalar_dense", memcpy("dtoh", 1)),
        ]
    )


def eye(call: Call) -> Steps:
    """Clear, then write the diagonal."""
    rows = int(call.option("n", 1))
    columns = int(call.option("m", rows))
    out = fresh((rows, columns), "fp32")
    diagonal = Tensor((min(rows, columns),), "fp32", (columns + 1,))
    return joined([fill_kernel(out), fill_kernel(diagonal)])


def histc(call: Call) -> Steps:
    """Clear the counts, then count; without bounds the least and the largest are found first."""
    one, bins = call.first, int(call.option("bins", 100))
    if call.option("min", 0) == call.option("max", 0):
        return unknown("histc without bounds was not looked at")
    count = kernel("kernelHistogram1D", "histogram", "scatter", one.nbytes, items=one.numel)
    return joined([fill_kernel(fresh((bins,), one.dtype)), count])


def bincount(call: Call) -> Steps:
    """Look for the least and the largest, tell the host both, then count."""
    one = call.first
    if one.numel == 0:
        return ()
    extreme = reduction(one, tuple(range(len(one.shape))), call.sms)
    count = kernel("kernelHistogram1D", "histogram", "scatter", one.nbytes, items=one.numel)
    return joined(
        [
            under("aten::min", extreme), under("aten::copy_", memcpy("dtoh", one.itemsize)),
            under("aten::max", extreme), under("aten::_local_scalar_dense", memcpy("dtoh", one.itemsize)),
            fill_kernel(fresh((int(call.option("minlength", 1)) or 1,), "int64")), count,
        ]
    )  # fmt: skip


def multinomial(call: Call) -> Steps:
    """Check the weights, divide by exponential noise, and take the largest; with replacement, by sums."""
    one = call.first
    samples = int(call.option("num_samples", 1))
    if call.option("replacement") and samples > 1:
        text = "sampleMultinomial"
        rows = [kernel(text, "random", "norm", one.nbytes, items=one.numel) for _ in range(2)]
        scan = kernel("tensor_kernel_scan_innermost_dim", "scan", "scan", 2 * one.nbytes, items=one.numel)
        return joined([copied(one, one), copied(one, one), rows[0], scan, rows[1]])
    flag, sums = fresh((), "bool"), fresh(one.shape[:-1], one.dtype)
    everything = tuple(range(len(one.shape)))
    parts: list[Steps] = []
    for extreme, compare in (("min", "ge"), ("max", "lt")):
        parts.append(under(f"aten::{extreme}", reduction(one, everything, call.sms)))
        parts.append(under(f"aten::{compare}", pointwise("", flag, [fresh((), one.dtype)])))
    flags = fresh(sums.shape, "bool")
    tell = under("aten::_assert_async", kernel("_assert_async_cuda_kernel", "assert", "tiny", 0))
    parts += [
        under("aten::bitwise_and", pointwise("", flag, [flag, flag])), tell,
        under("aten::sum", reduction(one, (len(one.shape) - 1,), call.sms)),
        under("aten::eq", pointwise("", flags, [sums])),
        under("aten::any", all_any(Call("any", (flags,), {}, call.env))),
        under("aten::bitwise_not", pointwise("", flag, [flag])), tell,
        under("aten::exponential_", kernel(
            "distribution_elementwise_grid_stride_kernel", "random", "random", one.nbytes,
            flops=one.numel, dtype=one.dtype, items=one.numel,
        )),
        under("aten::div", pointwise("DivFunctor", one, [one, one])),
    ]  # fmt: skip
    last = (len(one.shape) - 1,)
    if samples == 1:
        parts.append(under("aten::argmax", reduction(one, last, call.sms, out="int64")))
        return joined(parts)
    return joined([*parts, unknown("how several samples without replacement are taken was not looked at")])


def randperm(call: Call) -> Steps:
    """Draw keys, sort numbers by them, and shuffle those with equal keys."""
    count = int(call.option("n", 1))
    if count == 0:
        return ()
    keys = fresh((count,), "int32" if count <= 1 << 16 else "int64")
    numbers = fresh((count,), "int64")
    bits = min(64, math.ceil(math.log2(max(count, 2)) * 3) + 1)
    draw = kernel("distribution_elementwise_grid_stride_kernel", "random", "random", keys.nbytes, items=count)
    end = kernel("randperm_handle_duplicate_keys_kernel", "random", "tiny", 0)
    return joined(
        [
            fill_kernel(fresh((), "int64")),
            under("aten::arange", kernel("elementwise_kernel_with_index", "index", "fill", numbers.nbytes)),
            under("aten::random_", draw), sorted_keys(count, (1 << min(bits, 32)) - 1), end,
        ]
    )  # fmt: skip


def bce_with_logits(call: Call) -> Steps:
    """Composed of kernels element by element, in part in place, and the mean."""
    shape = broadcast(call.first.shape, call.at(1).shape)
    one = (
        like([call.first], call.first.dtype) if call.first.shape == shape else fresh(shape, call.first.dtype)
    )
    parts = [
        under("aten::log_sigmoid_forward", pointwise("", one, [call.first], flops=4)),
        fill_kernel(one),
        under("aten::sub_", pointwise("", one, [one, call.at(1)])),
        under("aten::mul_", pointwise("", one, [one, call.first])),
        under("aten::sub_", pointwise("", one, [one, one])),
    ]
    weights = len(call.tensors) - 2  # input and target; a weight of classes or of positives is multiplied
    parts += [under("aten::mul_", pointwise("", one, [one, call.tensors[-1]]))] * weights
    return joined([*parts, reduced_loss(call, one)])


def reduced_loss(call: Call, one: Tensor) -> Steps:
    """Average or add up a loss, as its number of a reduction says: 0 none, 1 the mean, 2 the sum."""
    how = call.option("reduction", 1)
    if how in (0, "none"):
        return ()
    name = "aten::sum" if how in (2, "sum") else "aten::mean"
    return under(name, reduction(one, tuple(range(len(one.shape))), call.sms))


def binary_cross_entropy(call: Call) -> Steps:
    """One kernel element by element, and the mean."""
    one = like(call.tensors[:2], call.first.dtype)
    return joined([pointwise("", one, call.tensors, flops=4), reduced_loss(call, one)])


def count_nonzero(call: Call) -> Steps:
    """Compare with zero, and add up."""
    one = call.first
    flags, whole = fresh(one.shape, "bool"), fresh(one.shape, "int64")
    dims = tuple(range(len(one.shape)))
    return joined(
        [
            under("aten::ne", pointwise("", flags, [one])), copied(flags, whole),
            under("aten::sum", reduction(whole, dims, call.sms)),
        ]
    )  # fmt: skip


def scattered_copy(call: Call) -> Steps:
    """Copy the whole, then a part into it, as functional forms of slices do."""
    one, part = call.first, call.at(1)
    return joined([copied(one, like([one], one.dtype)), copied(part, part)])


def filled_then(call: Call) -> Steps:
    """Clear the gradient of the input, then add into it with one kernel."""
    grad = call.first
    shape = call.option("self_sizes") or call.option("input_sizes") or call.option("input_size")
    if shape is None and len(call.tensors) > 1 and call.at(1).dtype in FLOATING:
        shape = call.at(1).shape
    if shape is None:
        return unknown(f"the sizes of the input are not among {call.name}'s arguments")
    made = fresh(shape, grad.dtype)
    run = kernel("", "scatter", "scatter", grad.nbytes + made.nbytes, dtype=grad.dtype, items=grad.numel)
    return joined([fill_kernel(made), run])


def one_kernel(call: Call) -> Steps:
    """One kernel that reads its inputs and writes its results, neither in any special order."""
    made = call.outputs or call.tensors[:1]
    moved = sum(one.stored_bytes for one in call.tensors) + sum(one.nbytes for one in made)
    items = max((one.numel for one in (*call.tensors, *made)), default=0)
    if items == 0:
        return ()
    return kernel("", "elementwise", "strided", moved, dtype=made[0].dtype, items=items)
