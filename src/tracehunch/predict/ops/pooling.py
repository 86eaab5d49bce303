"""Pooling and resizing of images."""

from typing import Final

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.steps import Call, Steps, fresh, joined, kernel, unknown
from tracehunch.predict.ops.tensor import Tensor

_IMAGE: Final = 4  # dimensions
_INT64: Final = 8


def max_pool(call: Call) -> Steps:
    """Take the largest of each window, and where it was: one kernel."""
    return _resized(call, "max_pool_forward", "pool", _pooled(call, call.first), extra=_INT64)


def average_pool(call: Call) -> Steps:
    """Average each window: one kernel."""
    return _resized(call, "avg_pool2d_out_cuda_frame", "pool", _pooled(call, call.first))


def adaptive_average_pool(call: Call) -> Steps:
    """Average windows of an output's size: one kernel; to a single element it is a mean."""
    one, size = call.first, call.option("output_size", (1, 1))
    sides = (size, size) if isinstance(size, int) else tuple(size)
    if len(one.shape) != _IMAGE:
        return unknown("pooling was looked at for batches of images")
    if sides == (1, 1):
        return reduction(one, (2, 3), call.sms)
    return _resized(call, "adaptive_average_pool", "adaptive_pool", (*one.shape[:2], *sides))


def upsample(call: Call) -> Steps:
    """Write each element several times, or between its neighbours: one kernel."""
    one = call.first
    size = call.option("output_size", call.option("size"))
    if size is None:
        factors = call.option("scale_factors", call.option("scale_factor", 1))
        pair = (factors, factors) if isinstance(factors, int | float) else tuple(factors)
        size = [int(side * factor) for side, factor in zip(one.shape[2:], pair, strict=False)]
    sides = (size, size) if isinstance(size, int) else tuple(size)
    kind = "bilinear" if "bilinear" in call.name or call.option("mode") == "bilinear" else "nearest"
    return _resized(call, f"upsample_{kind}2d", kind, (*one.shape[:2], *sides))


def spread_back(call: Call) -> Steps:
    """Derive those whose windows touch each other or leave gaps: fill with zeros, then add; else one kernel.

    The gradient and the input are given, or the gradient and the `input_size`.
    """
    grad = call.first
    shape = call.option("input_size") or call.at(1).shape
    result = fresh(shape, grad.dtype)
    plain = call.name.startswith(("avg_pool", "upsample_nearest"))
    kind = next((kind for kind in ("bilinear", "adaptive") if kind in call.name), "pool")
    run = kernel(
        "", "pooling-backward", f"{kind}_backward{_last(grad)}", grad.nbytes + result.nbytes,
        dtype=grad.dtype, items=max(grad.numel, result.numel),
    )  # fmt: skip
    return run if plain else joined([fill_kernel(result), run])


def _last(one: Tensor) -> str:
    """Name the layout of channels side by side, which has kernels of its own."""
    return "_last" if len(one.shape) == _IMAGE and one.strides[1] == 1 and one.size(1) > 1 else ""


def _resized(call: Call, text: str, family: str, shape: tuple[int, ...], extra: int = 0) -> Steps:
    one = call.first
    if len(one.shape) != _IMAGE:
        return unknown("pooling and resizing were looked at for batches of images")
    out = fresh(shape, one.dtype)
    if out.numel == 0:
        return ()
    moved = one.nbytes + out.nbytes + extra * out.numel
    serial = one.size(0) * one.size(1) if family == "bilinear" and not _last(one) else 0
    return kernel(
        text, "pooling", f"{family}{_last(one)}", moved, flops=one.numel, dtype=one.dtype,
        items=max(one.numel, out.numel), serial=serial,
    )  # fmt: skip


def _pooled(call: Call, one: Tensor) -> tuple[int, ...]:
    """Return the shape after windows of a size and stride."""
    window = _pair(call.option("kernel_size", 2))
    stride = _pair(call.option("stride") or window)
    padding = _pair(call.option("padding", 0))
    sides = [
        (side + 2 * edge - width) // step + 1
        for side, width, step, edge in zip(one.shape[-2:], window, stride, padding, strict=True)
    ]
    return (*one.shape[:-2], *(max(side, 0) for side in sides))


def _pair(given: object) -> tuple[int, int]:
    if isinstance(given, list | tuple):
        numbers = [int(each) for each in given]
        return (numbers[0], numbers[-1])
    assert isinstance(given, int)
    return given, given
