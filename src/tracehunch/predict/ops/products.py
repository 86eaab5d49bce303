"""Matrix products as PyTorch asks for them: what is copied before, folded into one product, added after."""

import math
from dataclasses import replace
from typing import Final, Literal

from tracehunch.predict.ops.gemm import Product
from tracehunch.predict.ops.steps import (
    UNTIMED,
    Call,
    Step,
    Steps,
    contiguous,
    copied,
    error,
    fresh,
    joined,
    kernel,
    pointwise,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor, broadcast

_MATRIX: Final = 2
_BATCHED: Final = 3
_ANY: Final = 1 << 20  # the alignment of a stride that is never used


def product_of(a: Tensor, b: Tensor, route: Literal["cublas", "lt"] = "cublas") -> tuple[Steps, Product]:
    """Return the copies that two matrices or batches of them need, and the product.

    A matrix is read as it lies where one of its dimensions is contiguous; else it is copied.
    """
    steps_a, a, turned_a = _readable(a)
    steps_b, b, turned_b = _readable(b)
    m, k, n = a.size(-2), a.size(-1), b.size(-1)
    batch = a.size(0) if len(a.shape) == _BATCHED else 1
    aligned = min(_alignment(a, m, k), _alignment(b, k, n), _out_alignment(m, n))
    if 1 in (m, n):
        aligned = min(aligned, _power(k), _power(max(m, n)))
    product = Product(m, n, k, batch, a.dtype, turned_a, turned_b, min(aligned, 64), route)
    return joined([steps_a, steps_b]), product


def _readable(one: Tensor) -> tuple[Steps, Tensor, bool]:
    """Return the copy that a matrix needs, the matrix, and whether its memory holds the transpose."""
    rows, columns = one.size(-2), one.size(-1)
    by_row, by_column = one.strides[-2], one.strides[-1]
    if (by_column == 1 or columns == 1) and (by_row >= max(columns, 1) or rows == 1):
        return (), one, False
    if (by_row == 1 or rows == 1) and (by_column >= max(rows, 1) or columns == 1):
        return (), one, True
    steps, made = contiguous(one)
    return steps, made, False


def _alignment(one: Tensor, rows: int, columns: int) -> int:
    """Return the largest power of two that divides offset and the strides that are used."""
    used = [_power(one.offset)] if one.offset else []
    if rows > 1 and one.strides[-2] != 1:
        used.append(_power(one.strides[-2]))
    if columns > 1 and one.strides[-1] != 1:
        used.append(_power(one.strides[-1]))
    if len(one.shape) == _BATCHED and one.shape[0] > 1 and one.strides[0]:
        used.append(_power(one.strides[0]))
    return min(used, default=_ANY)


def _out_alignment(m: int, n: int) -> int:
    return _power(n) if m > 1 and n > 1 else _ANY


def _power(value: int) -> int:
    return value & -value if value else _ANY


def _run(before: Steps, product: Product) -> Steps:
    if min(product.m, product.n, product.batch) == 0:
        return before
    return joined([before, (Step("product", product=product),)])


def _mismatch(a: Tensor, b: Tensor) -> str | None:
    if a.size(-1) != b.size(-2):
        return f"shapes {a.shape} and {b.shape} cannot be multiplied: {a.size(-1)} is not {b.size(-2)}"
    if a.dtype != b.dtype:
        return f"operands have different types, {a.dtype} and {b.dtype}"
    return None


def mm(call: Call) -> Steps:
    """Multiply two matrices, or two batches of matrices."""
    a, b = call.first, call.at(1)
    wrong = _mismatch(a, b)
    return error(wrong) if wrong else _run(*product_of(a, b))


def addmm(call: Call) -> Steps:
    """Multiply and add: a vector by the product's own kernel, a matrix is copied into place before."""
    bias, a, b = call.first, call.at(1), call.at(2)
    wrong = _mismatch(a, b)
    if wrong:
        return error(wrong)
    vector = len(bias.shape) == 1 and bias.is_contiguous and bias.size(0) == b.size(-1)
    if vector and call.name != "addmm_":
        if min(b.shape) > 1:
            return _run(*product_of(a, b, "lt"))
        # cuBLASLt is not asked for a single column; addmm itself spreads the bias
        return tuple(replace(step, op="") for step in _added(call, bias, a, b))
    return _added(call, bias, a, b)


def baddbmm(call: Call) -> Steps:
    """Multiply batches and add what was copied into place before."""
    bias, a, b = call.first, call.at(1), call.at(2)
    wrong = _mismatch(a, b)
    return error(wrong) if wrong else _added(call, bias, a, b)


def _added(call: Call, bias: Tensor, a: Tensor, b: Tensor) -> Steps:
    out = fresh((*a.shape[:-1], b.size(-1)), a.dtype)
    in_place = call.name.endswith("_") or call.option("beta", 1) == 0
    placed = () if in_place else copied(bias.expanded(out.shape), out)
    before, product = product_of(a, b)
    return _run(joined([placed, before]), product)


def linear(call: Call) -> Steps:
    """Multiply by the transposed weight; a bias is added by the same kernel."""
    one, weight = call.first, call.at(1)
    bias = call.tensors[2] if len(call.tensors) > _MATRIX else None
    turned = weight.transposed() if len(weight.shape) > 1 else weight
    if bias is None:
        return matmul(Call("matmul", (one, turned), {}, call.env))
    flat = one.viewed((one.numel // max(one.size(-1), 1), one.size(-1)))
    if len(one.shape) == _MATRIX or (flat is not None and one.is_contiguous):
        return addmm(Call("addmm", (bias, flat or one, turned), {}, call.env))
    out = fresh((*one.shape[:-1], turned.size(-1)), one.dtype)
    return joined(
        [matmul(Call("matmul", (one, turned), {}, call.env)), pointwise("CUDAFunctor_add", out, [out, bias])]
    )


def matmul(call: Call) -> Steps:
    """Multiply with broadcasting: batches times one matrix fold into one product, others into a batch."""
    a, b = call.first, call.at(1)
    if len(a.shape) == 1 or len(b.shape) == 1:
        return _with_vector(a, b)
    wrong = _mismatch(a, b)
    if wrong:
        return error(wrong)
    if len(a.shape) == len(b.shape) == _MATRIX:
        return _run(*product_of(a, b))
    if len(b.shape) == _MATRIX:
        before, flat = _folded(a, (math.prod(a.shape[:-1]), a.size(-1)))
        copies, product = product_of(flat, b)
        return _run(joined([before, copies]), product)
    lead = broadcast(a.shape[:-2], b.shape[:-2])
    count = math.prod(lead)
    before_a, a = _folded(a.expanded((*lead, *a.shape[-2:])), (count, *a.shape[-2:]))
    before_b, b = _folded(b.expanded((*lead, *b.shape[-2:])), (count, *b.shape[-2:]))
    copies, product = product_of(a, b)
    return _run(joined([before_a, before_b, copies]), product)


def _folded(one: Tensor, shape: tuple[int, ...]) -> tuple[Steps, Tensor]:
    """Return a tensor in another shape: a view, or a copy where strides forbid it."""
    seen = one.viewed(shape)
    if seen is not None:
        return (), seen
    steps, made = contiguous(one)
    flat = made.viewed(shape)
    assert flat is not None
    return steps, flat


def _with_vector(a: Tensor, b: Tensor) -> Steps:
    if len(a.shape) == 1:
        seen = a.viewed((1, a.size(0)))
        assert seen is not None
        a = seen
    if len(b.shape) == 1:
        column = b.viewed((b.size(0), 1))
        assert column is not None
        b = column
    return matmul(Call("matmul", (a, b)))


def vectors(call: Call) -> Steps:
    """Multiply with a vector."""
    return _with_vector(*call.tensors[-2:])


def narrow(call: Call) -> Steps:
    """Multiply matrices of a byte an element, int8 or scaled fp8: both are read as they lie."""
    a, b = call.first, call.at(1)
    if a.size(-1) != b.size(-2):
        return error(f"shapes {a.shape} and {b.shape} cannot be multiplied: {a.size(-1)} is not {b.size(-2)}")
    before, product = product_of(a, b, "lt")
    return _run(before, product)


def packed(call: Call) -> Steps:
    """Multiply by weights that were packed into bytes or less: one kernel that reads them as they are.

    Sources: int4mm.cu and int8mm.cu in ATen/native/cuda.
    """
    one, made = call.first, call.outputs[0] if call.outputs else call.first
    int8 = call.name == "_weight_int8pack_mm"
    if int8 and one.dtype != "fp32":
        return unknown("a product with weights in int8 was looked at in float32 alone")
    if made.numel == 0:
        return ()
    moved = sum(each.nbytes for each in call.tensors) + made.nbytes
    text = "weight_int8pack_mm_kernel" if int8 else "tinygemm"
    flops = 2 * made.numel * one.size(-1)
    return kernel(text, "gemm", UNTIMED, moved, flops=flops, dtype=made.dtype)
