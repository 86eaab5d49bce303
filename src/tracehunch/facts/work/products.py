"""Matrix products: of matrices, batches, vectors, scaled and grouped ones."""

from typing import Final

from tracehunch.facts.work.dtypes import stated_dtype
from tracehunch.facts.work.inputs import Call, NotRecorded, Operand
from tracehunch.facts.work.work import Work, elements, moved

_BATCHED: Final = 3  # dimensions
_PACKED: Final = "fp4"  # two numbers in each element, along the inner dimension


def product_flops(m: int, n: int, k: int, batch: int = 1) -> int:
    """Return the FLOPs of ``batch`` products of (m, k) and (k, n): a multiply and an add as two."""
    return 2 * batch * m * n * k


def product_bytes(m: int, n: int, k: int, element_bytes: int, batch: int = 1) -> int:
    """Return the bytes of both operands and the product, each once."""
    return element_bytes * batch * (m * k + k * n + m * n)


def mm(call: Call) -> Work:
    """Multiply two matrices, or two batches of them: ``mm``, ``bmm``."""
    out = call.out(2)
    return _product(call.tensor(0), call.tensor(1), stated_dtype(call.value(2)) if out is None else out.dtype)


def int_mm(call: Call) -> Work:
    """Multiply two matrices of bytes into one of 32-bit integers."""
    return _product(call.tensor(0), call.tensor(1), "int32")


def addmm(call: Call) -> Work:
    """Multiply and add a vector or a matrix, which a ``beta`` of 0 leaves out."""
    added, a, b = call.tensor(0), call.tensor(1), call.tensor(2)
    work = _product(a, _column(b))
    scaled_away = call.value(3) in ("0", "0.")
    return _with(work, 0 if scaled_away else moved(added))


def mv(call: Call) -> Work:
    """Multiply a matrix, or a vector, and a vector: ``mv``, ``dot``."""
    a, b = call.tensor(0), call.tensor(1)
    return _product(_row(a), _column(b))


def addbmm(call: Call) -> Work:
    """Multiply batches, and add the products to one matrix."""
    added, a, b = call.tensor(0), call.tensor(1), call.tensor(2)
    batch, m, k = _matrices(a)
    n = b.shape[-1]
    return Work(product_flops(m, n, k, batch), moved(added, a, b) + elements(m * n, a.dtype), a.dtype)


def scaled_mm(call: Call) -> Work:
    """Multiply matrices with scales and a bias; the result is of the stated type, or that of the first."""
    a, b = call.tensor(0), call.tensor(1)
    out = call.out(2)
    written = out is not None and out.shape == (a.shape[0], b.shape[-1])
    last = len(call.inputs) - written
    stated = (stated_dtype(call.value(at)) for at in range(2, last))
    word = out.dtype if written and out else next((word for word in stated if word is not None), None)
    return _with(_product(a, b, word), moved(*(call.optional(at) for at in range(2, last))))


def grouped_mm(call: Call) -> Work:
    """Multiply groups of rows with a matrix each (a mixture of experts), in 16 bits.

    Where the groups end stands in a tensor: all rows are taken to be in one.
    """
    a, b = call.tensor(0), call.tensor(1)
    if len(a.shape) == len(b.shape):
        groups = a.shape[0] if len(a.shape) == _BATCHED else _ends(call).numel
        out = groups * a.shape[-2] * b.shape[-1]
    else:
        out = (a.shape[0] if len(a.shape) == 2 else a.shape[-2]) * b.shape[-1]
    batch = a.shape[0] if len(a.shape) == len(b.shape) == _BATCHED else 1
    flops = product_flops(a.shape[-2], b.shape[-1], _inner(a.shape[-1], a), batch)
    return Work(flops, moved(a, b) + elements(out, "bf16"), a.dtype)


def _ends(call: Call) -> Operand:
    """Return the tensor that holds where groups end."""
    found = (call.optional(at) for at in range(2, 6))
    ends = next((one for one in found if one is not None and one.dtype == "int32"), None)
    if ends is None:
        raise NotRecorded(f"the groups of {call.name} were not recorded")
    return ends


def linear(call: Call) -> Work:
    """Multiply by the transposed weight and add a bias, where one kernel does it all."""
    one, weight, bias = call.tensor(0), call.tensor(1), call.optional(2)
    (n, k) = weight.shape if len(weight.shape) == 2 else (1, weight.shape[-1])
    m = one.numel // max(one.shape[-1], 1)
    return Work(product_flops(m, n, k), moved(one, weight, bias) + elements(m * n, one.dtype), one.dtype)


def matmul(call: Call) -> Work:
    """Multiply with broadcasting, where one kernel does it all."""
    a, b = _row(call.tensor(0)), _column(call.tensor(1))
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    lead = max(a.shape[:-2], b.shape[:-2], key=len)
    batch = 1
    for at in range(1, len(lead) + 1):
        batch *= max(one.shape[-2 - at] if len(one.shape) > 1 + at else 1 for one in (a, b))
    return Work(product_flops(m, n, k, batch), moved(a, b) + elements(batch * m * n, a.dtype), a.dtype)


def _product(a: Operand, b: Operand, out: str | None = None) -> Work:
    batch, m, k = _matrices(a)
    n = b.shape[-1]
    if len(b.shape) < 2 or b.shape[-2] != k:
        raise NotRecorded(f"shapes {list(a.shape)} and {list(b.shape)} are none of a matrix product")
    flops = product_flops(m, n, _inner(k, a), batch)
    return Work(flops, moved(a, b) + elements(batch * m * n, out or a.dtype), a.dtype)


def _matrices(one: Operand) -> tuple[int, int, int]:
    """Return the number of matrices, and rows and columns of each."""
    if len(one.shape) not in (2, 3):
        raise NotRecorded(f"shape {list(one.shape)} is none of a matrix product")
    batch = one.shape[0] if len(one.shape) == 3 else 1
    return batch, one.shape[-2], one.shape[-1]


def _inner(k: int, one: Operand) -> int:
    return 2 * k if one.dtype == _PACKED else k


def _with(work: Work, more_bytes: int) -> Work:
    return Work(work.flops, (work.bytes or 0) + more_bytes, work.dtype)


def _row(one: Operand) -> Operand:
    """Return a vector as a matrix of one row."""
    if len(one.shape) != 1:
        return one
    return Operand((1, *one.shape), one.dtype, None if one.strides is None else (one.shape[0], *one.strides))


def _column(one: Operand) -> Operand:
    """Return a vector as a matrix of one column."""
    if len(one.shape) != 1:
        return one
    return Operand((*one.shape, 1), one.dtype, None if one.strides is None else (*one.strides, 1))
