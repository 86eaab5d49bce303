"""A recorded call in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.predict.sdpa.tensor import contiguous_strides

if TYPE_CHECKING:
    from tracehunch.predict.sdpa import SdpaCall, TensorSpec


def call_text(call: SdpaCall) -> str:
    """``q (4, 16, 1024, 64), k and v (4, 4, 1024, 64) bfloat16, is_causal, enable_gqa``."""
    return ", ".join([tensors_text(call), *flags(call)])


def tensors_text(call: SdpaCall) -> str:
    """Shapes and types of query, key and value, those that are alike together."""
    q, k, v = call.inputs
    one_type = q.dtype == k.dtype == v.dtype
    if (q.shape, q.dtype) == (k.shape, k.dtype) == (v.shape, v.dtype):
        return f"q, k, v {q.shape} {q.dtype}"
    if one_type and k.shape == v.shape:
        return f"q {q.shape}, k, v {k.shape} {q.dtype}"
    if one_type:
        return f"q {q.shape}, k {k.shape}, v {v.shape} {q.dtype}"
    return ", ".join(f"{name} {one.shape} {one.dtype}" for name, one in zip("qkv", call.inputs, strict=True))


def flags(call: SdpaCall) -> list[str]:
    """List the other arguments, as far as they are not what they are by default."""
    found = []
    if call.mask is not None:
        found.append(f"mask {call.mask.dtype} {call.mask.shape}")
    if call.is_causal:
        found.append("is_causal")
    if call.enable_gqa:
        found.append("enable_gqa")
    if call.dropout:
        found.append(f"dropout {call.dropout:g}")
    if call.scale is not None:
        found.append(f"scale {call.scale:g}")
    return found


def strides_text(call: SdpaCall) -> str:
    """``strides q (1048576, 64, 1024, 1)``: of tensors that are not contiguous; "" where all are."""
    named = [*zip("qkv", call.inputs, strict=True)]
    named += [] if call.mask is None else [("mask", call.mask)]
    odd: dict[tuple[int, ...], list[str]] = {}
    for name, one in named:
        if not _is_contiguous(one):
            odd.setdefault(one.stride, []).append(name)
    parts = [f"{', '.join(names)} {stride}" for stride, names in odd.items()]
    return f"strides {'; '.join(parts)}" if parts else ""


def _is_contiguous(given: TensorSpec) -> bool:
    """Whether a tensor is laid out row by row; the stride of a dimension of size 1 does not matter."""
    plain = contiguous_strides(given.shape)
    return all(
        size == 1 or step == own for size, step, own in zip(given.shape, given.stride, plain, strict=True)
    )
