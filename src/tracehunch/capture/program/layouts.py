"""How each SDPA backend lays out its output and gradients, as calls of H200 traces show it.

Flash makes them like q, k and v; its head dimensions that are no multiple of 8 are padded first. Efficient
fills (B, L, H, D). cuDNN keeps the order of q's dimensions. Math ends in a batched product, (B, H, L, D).
Source: attention.cu, attention_backward.cu and MHA.cpp in ATen/native.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.predict.environment import Backend
    from tracehunch.predict.sdpa import SdpaCall

_PAD: Final = 8


def output(torch: Any, call: SdpaCall, q: Any, backend: Backend | None) -> Any:
    """Return an output without values."""
    lead = _lead(torch, call)
    shape = (*lead, call.q.shape[-2], call.v.shape[-1])
    if backend == "flash" and shape == tuple(q.shape):
        if shape[-1] % _PAD == 0:
            return torch.empty_like(q)
        padded = -(-shape[-1] // _PAD) * _PAD
        return _empty(torch, q, (*shape[:-1], padded))[..., : shape[-1]]
    if backend == "efficient":
        return _rows_first(torch, q, shape)
    if backend == "cudnn":
        return _ordered_like(torch, q, shape)
    return _empty(torch, q, shape)


def gradient(torch: Any, tensor: Any, backend: Backend | None) -> Any:
    """Return a gradient without values."""
    if backend == "efficient":
        return _rows_first(torch, tensor, tuple(tensor.shape))
    if backend in ("flash", "cudnn"):
        return torch.empty_like(tensor)
    return _empty(torch, tensor, tuple(tensor.shape))


def _lead(torch: Any, call: SdpaCall) -> tuple[int, ...]:
    """Return the dimensions before the last two; with grouped heads those of q."""
    if call.enable_gqa:
        return call.q.shape[:-2]
    shapes = [one.shape[:-2] for one in call.inputs]
    return tuple(torch.broadcast_shapes(*shapes))


def _empty(torch: Any, like: Any, shape: tuple[int, ...]) -> Any:
    return torch.empty(shape, dtype=like.dtype, device=like.device)


def _rows_first(torch: Any, like: Any, shape: tuple[int, ...]) -> Any:
    if len(shape) != 4:
        return _empty(torch, like, shape)
    batch, heads, length, width = shape
    return _empty(torch, like, (batch, length, heads, width)).transpose(1, 2)


def _ordered_like(torch: Any, like: Any, shape: tuple[int, ...]) -> Any:
    order = sorted(range(like.dim()), key=lambda dim: (-like.stride(dim), dim))
    made = _empty(torch, like, tuple(shape[dim] for dim in order))
    return made.permute([order.index(dim) for dim in range(len(shape))])


def convolution_format(torch: Any, x: Any, weight: Any) -> Any:
    """Return the memory format in which cuDNN convolves: channels last if the image or the filters have it.

    Source: `cudnn_conv_suggest_memory_format` in ATen/native/ConvUtils.h.
    """
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(weight.dim())
    if last is None or torch.float64 in (x.dtype, weight.dtype):
        return torch.contiguous_format
    suggested = torch._prims_common.suggest_memory_format  # noqa: SLF001  # as the C++ function asks
    return last if last in (suggested(x), suggested(weight)) else torch.contiguous_format


def view_strides(
    shape: Sequence[int], strides: Sequence[int], wanted: Sequence[int]
) -> tuple[int, ...] | None:
    """Return the strides of a view in another shape; None where there is no such view.

    Source: `computeStride_impl` in ATen/TensorUtils.cpp.
    """
    if not shape:
        return (1,) * len(wanted)
    made: list[int] = []
    left = list(wanted)
    base, inside, covered = strides[-1], 1, 1
    for at in range(len(shape) - 1, -1, -1):
        inside *= shape[at]
        if at > 0 and (shape[at - 1] == 1 or strides[at - 1] == inside * base):
            continue  # both dimensions are walked through in one stride
        while left and (covered < inside or left[-1] == 1):
            made.append(covered * base)
            covered *= left.pop()
        if covered != inside:
            return None
        base, inside, covered = strides[at - 1], 1, 1
    return tuple(reversed(made))
