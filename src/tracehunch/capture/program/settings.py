"""Process-wide settings of torch: read for the record, and put back after it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def settings(torch: Any) -> dict[str, str]:
    """Return what kernels depend on, as text."""
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cudnn_allow_tf32": str(torch.backends.cudnn.allow_tf32),
        "cudnn_benchmark": str(torch.backends.cudnn.benchmark),
        "deterministic": str(torch.are_deterministic_algorithms_enabled()),
    }


@contextmanager
def kept(torch: Any) -> Iterator[None]:
    """Undo what a program sets for the whole process."""
    grad, dtype, device = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_default_device()
    precision, benchmark = torch.get_float32_matmul_precision(), torch.backends.cudnn.benchmark
    deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        yield
    finally:
        torch.set_grad_enabled(grad)
        torch.set_default_dtype(dtype)
        torch.set_float32_matmul_precision(precision)
        torch.backends.cudnn.benchmark = benchmark
        torch.use_deterministic_algorithms(deterministic)
        if torch.get_default_device() != device:
            torch.set_default_device(None)
