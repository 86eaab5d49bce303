"""Kernels that PyTorch's own operations run, in the words of `tracehunch.kernels.Identity`."""

from typing import Final

from tracehunch.predict.activities import KernelGuess
from tracehunch.predict.ops.dtypes import HALF, dtype_word

_SOFTMAX_WARP_FORWARD: Final = 2_048
_SOFTMAX_WARP_BACKWARD: Final = 1_024
"""Longest rows, in elements, of the softmax that keeps a row in one warp's registers (H200, torch 2.11)."""


def fill(dtype: str, op: str) -> KernelGuess:
    """Return the kernel that sets all elements to one value."""
    return KernelGuess("FillFunctor", "pytorch", "fill", dtype=dtype_word(dtype), op=op)


def copy(source: str, target: str, op: str) -> KernelGuess:
    """Return the kernel that copies elements, from one data type to another or in another order."""
    kind = dtype_word(target)
    if source != target and kind in HALF:
        hint = "bfloat16_copy_kernel_cuda" if kind == "bf16" else "float16_copy_kernel_cuda"
        return KernelGuess(hint, "pytorch", "copy", dtype=kind, op=op)
    return KernelGuess("direct_copy_kernel_cuda", "pytorch", "copy", op=op)


def elementwise(hint: str, dtype: str | None, op: str) -> KernelGuess:
    """Return an elementwise kernel; `hint` is its functor."""
    kind = None if dtype is None else dtype_word(dtype)
    return KernelGuess(hint, "pytorch", "elementwise", dtype=kind, op=op)


def softmax(dtype: str, length: int, op: str, *, backward: bool = False) -> KernelGuess:
    """Return the softmax kernel over rows of a length."""
    warp = length <= (_SOFTMAX_WARP_BACKWARD if backward else _SOFTMAX_WARP_FORWARD)
    hint = ("softmax_warp_" if warp else "cunn_SoftMax") + ("backward" if backward else "forward")
    hint = hint if warp else hint.replace("forward", "Forward").replace("backward", "Backward")
    return KernelGuess(hint, "pytorch", "softmax", dtype=dtype_word(dtype), op=op)


def reduction(dtype: str, op: str) -> KernelGuess:
    """Return the kernel that reduces a dimension."""
    return KernelGuess("reduce_kernel", "pytorch", "reduce", dtype=dtype_word(dtype), op=op)


def triangle(op: str) -> KernelGuess:
    """Return the kernel of `tril` on a boolean matrix."""
    return KernelGuess("triu_tril_kernel", "pytorch", "triu-tril", dtype="bool", op=op)


def dropout(dtype: str, op: str) -> KernelGuess:
    """Return the kernel that drops elements and keeps the mask."""
    return KernelGuess("fused_dropout_kernel", "pytorch", "dropout", dtype=dtype_word(dtype), op=op)
