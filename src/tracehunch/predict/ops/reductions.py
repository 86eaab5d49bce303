"""Reductions: how PyTorch's reduction kernel divides the work, and what that adds.

One kernel does a reduction. Where there are few results and much to reduce, several blocks share a result;
they count each other in through semaphores, which a memset clears before.
"""

from typing import Final

from tracehunch.predict.ops.dtypes import FLOATING, dtype_word
from tracehunch.predict.ops.reduction_plan import issued, layout, meeting, plan, rounds
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    copied,
    fresh,
    joined,
    kernel,
    like,
    memset,
    pointwise,
    under,
)
from tracehunch.predict.ops.tensor import Tensor

_THREADS: Final = 512  # of a block, at most
_FEWEST: Final = 4  # log2 of the threads that a scan sets to a line, at least
_HALF: Final = 2  # bytes
_VARIANCES: Final = frozenset({"var", "std", "var_mean", "std_mean"})


def dims_of(call: Call, one: Tensor) -> tuple[int, ...]:
    """Return the dimensions that a call reduces, all where it names none."""
    dim = call.option("dim")
    if dim is None or (not isinstance(dim, int) and not dim):
        return tuple(range(len(one.shape)))
    named = (dim,) if isinstance(dim, int) else tuple(dim)
    return tuple(sorted(each % max(len(one.shape), 1) for each in named))


def reduced(one: Tensor, dims: tuple[int, ...], *, keepdim: bool = False) -> tuple[int, ...]:
    """Return the shape that is left."""
    if keepdim:
        return tuple(1 if dim in dims else size for dim, size in enumerate(one.shape))
    return tuple(size for dim, size in enumerate(one.shape) if dim not in dims)


def reduction(
    one: Tensor, dims: tuple[int, ...], sms: int, *, out: str | None = None, flops: int = 1, outputs: int = 1,
    text: str = "reduce_kernel", name: str = "sum",
) -> Steps:  # fmt: skip
    """Return the reduction of a tensor along dimensions, with the memset of its semaphores if it has some."""
    shape = layout(one, dims, *_loads(name, one.itemsize))
    if one.numel == 0:
        return kernel("FillFunctor", "fill", "fill", shape.results * one.itemsize) if shape.results else ()
    written = shape.results * outputs * (fresh((), out).itemsize if out else one.itemsize)
    planned = plan(shape, sms)
    run = kernel(
        text, "reduction", _family(name, out, along=shape.along), one.stored_bytes + written,
        flops=flops * one.numel, dtype=one.dtype, items=issued(shape, planned, sms),
        serial=meeting(shape, planned), loads=rounds(shape, planned),
    )  # fmt: skip
    return joined([memset() if planned.sharing > 1 else (), run])


def _family(name: str, out: str | None, *, along: bool) -> str:
    """Return the family of a reduction: across memory, with indices, of variances, or none of these."""
    if not along:
        return "reduce_across"
    if out == "int64":
        return "reduce_indices"
    return "reduce_variances" if name in _VARIANCES else "reduce"


def _loads(name: str, itemsize: int) -> tuple[int, int]:
    """Return how many elements in a row a thread loads as one vector, and how many others at once."""
    if name in _VARIANCES:
        return 2, 2
    return 8 if name in ("sum", "mean") and itemsize == _HALF else 4, 4


SIMPLE: Final = {
    "sum": 1, "mean": 1, "amax": 1, "amin": 1, "prod": 1, "nansum": 1, "nanmean": 1, "var": 3, "std": 3,
    "norm": 2,    "linalg_vector_norm": 2, "vector_norm": 2, "var_mean": 3, "std_mean": 3, "aminmax": 2,
}  # fmt: skip


_COUNTING: Final = frozenset({"sum", "prod", "nansum"})  # whole numbers are converted to 64 bits before


def reduce(call: Call) -> Steps:
    """Reduce with one kernel, which converts floating types on the way."""
    one = call.first
    pairs = 2 if call.name in ("var_mean", "std_mean", "aminmax") else 1
    made: Steps = ()
    if call.name in _COUNTING and one.dtype not in FLOATING and one.dtype != "int64":
        whole = fresh(one.shape, "int64")
        made = copied(one, whole)
        one = whole
    return joined(
        [
            made,
            reduction(
                one, dims_of(call, one), call.sms, flops=SIMPLE[call.name], outputs=pairs, name=call.name
            ),
        ]
    )


def all_any(call: Call) -> Steps:
    """Reduce booleans; other types are compared with zero inside the kernel. A single element is copied."""
    if call.first.numel == 1:
        flag = fresh(call.first.shape, "bool")
        cast = () if call.first.dtype == "bool" else copied(call.first, flag)
        return joined([cast, copied(flag, flag)])
    return reduction(call.first, dims_of(call, call.first), call.sms, out="bool", name=call.name)


def extremes(call: Call) -> Steps:
    """Reduce to the extreme, its index or both; two tensors are compared element by element."""
    if len(call.tensors) > 1:
        whole = f"aten::{call.name}imum" if call.name in ("max", "min") else ""
        return under(whole, pointwise("", like(call.tensors, call.first.dtype), call.tensors))
    index = call.name.startswith("arg") or call.option("dim") is not None
    out = "int64" if index else None
    return reduction(call.first, dims_of(call, call.first), call.sms, out=out, name=call.name)


def logsumexp(call: Call) -> Steps:
    """Subtract the maximum, exponentiate, add up, take the logarithm: nine kernels as torch composes it."""
    one = call.first
    dims = dims_of(call, one)
    small = fresh(reduced(one, dims, keepdim=True), one.dtype)
    mask = fresh(small.shape, "bool")
    top = reduction(one, dims, call.sms, name="amax")
    guard = [
        pointwise("AbsFunctor", small, [small]), pointwise("", mask, [small]),
        pointwise("masked_fill_kernel", small, [small, mask]),
    ]  # fmt: skip
    shifted = fresh(one.shape, one.dtype)
    body = [
        pointwise("CUDAFunctor_add", shifted, [one, small]),
        pointwise("exp_kernel_cuda", shifted, [shifted]),
    ]
    end = [pointwise("log_kernel_cuda", small, [small]), pointwise("CUDAFunctor_add", small, [small, small])]
    return joined([top, *guard, *body, reduction(shifted, dims, call.sms), *end])


def _rounds(lines: int, length: int) -> int:
    """Return how often a block moves on along its lines; long lines get more of its threads than many do."""
    log = (_THREADS.bit_length() - 1 + length.bit_length() - lines.bit_length()) // 2
    threads = 1 << min(max(log, _FEWEST), _THREADS.bit_length() - 1)
    return -(-length // (2 * threads))


def scan(call: Call) -> Steps:
    """Scan along a dimension: one kernel, or two of CUB's for a single line."""
    one = call.first
    if one.numel == 0:
        return ()
    dim = call.option("dim", -1)
    wanted = call.option("dtype")
    stays = one.dtype in FLOATING or call.name.endswith("_")
    dtype = dtype_word(str(wanted)) if wanted else one.dtype if stays else "int64"
    counted = fresh(one.shape, dtype)
    same = one.dtype == dtype and one.is_contiguous
    source: Steps = () if same else copied(one, counted)
    moved = 2 * counted.nbytes
    if one.numel == one.size(dim) and call.name.rstrip("_") in ("cumsum", "cumprod"):
        first = kernel("DeviceScanInitKernel", "scan", "tiny", 0, library="cub")
        return joined(
            [
                source,
                first,
                kernel(
                    "DeviceScanKernel",
                    "scan",
                    "select",
                    moved,
                    flops=one.numel,
                    items=one.numel,
                    library="cub",
                ),
            ]
        )
    inner = one.size(dim) == one.numel or dim % max(len(one.shape), 1) == len(one.shape) - 1
    text = "tensor_kernel_scan_innermost_dim" if inner else "tensor_kernel_scan_outer_dim"
    family = "scan" if inner else "scan_across"
    serial = _rounds(one.numel // max(one.size(dim), 1), one.size(dim)) if inner else one.size(dim)
    run = kernel(
        text, "scan", family, moved, flops=one.numel, dtype=counted.dtype, items=one.numel, serial=serial
    )
    return joined([source, run])
