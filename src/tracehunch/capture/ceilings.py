"""What a device reaches: one large copy and one large matrix product, timed where the code will run.

A data sheet gives peaks at boost clock, which no kernel sustains. What a plain copy and a library's own large
product reach is the ceiling to hold other kernels against.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.torch_env import import_torch

if TYPE_CHECKING:
    from collections.abc import Callable

COPY_BYTES: Final = 1 << 30
"""Far more than any L2 cache, so that all of it goes through the memory."""

PRODUCT_SIZE: Final = 8192
"""Rows, columns and inner dimension: 1.1 TFLOP, enough to fill a large GPU many times over."""

_FREE_SHARE: Final = 0.25
"""Part of the free memory that the measurement may take."""

_REPEATS: Final = 5
_FLOPS_A_STEP: Final = 2  # a multiplication and an addition


@dataclass(frozen=True, slots=True)
class MeasuredCeilings:
    """Bytes/s of a large copy, read and written together, and FLOP/s of a large product in ``dtype``."""

    copy_bytes_per_s: float
    matmul_flops_per_s: float
    dtype: str


def measure_ceilings(
    device: str,
    dtype: str,
    *,
    copy_bytes: int = COPY_BYTES,
    product_size: int = PRODUCT_SIZE,
) -> MeasuredCeilings | None:
    """Measure a device ("cuda" or "cpu"); ``dtype`` as PyTorch names it ("bfloat16").

    The best of some repetitions counts. None where the device has not four times the memory that it takes, or
    cannot multiply this type.
    """
    torch = import_torch()
    of_product = 3 * product_size * product_size * getattr(torch, dtype).itemsize
    if device == "cuda" and max(2 * copy_bytes, of_product) > _FREE_SHARE * torch.cuda.mem_get_info()[0]:
        return None
    try:
        copied_s = _copy_s(torch, device, copy_bytes)
        multiplied_s = _product_s(torch, device, dtype, product_size)
    except RuntimeError:  # no memory after all, or no kernel for the type: then the data sheet has to do
        return None
    return MeasuredCeilings(2 * copy_bytes / copied_s, _FLOPS_A_STEP * product_size**3 / multiplied_s, dtype)


def _copy_s(torch: Any, device: str, n_bytes: int) -> float:
    source = torch.zeros(n_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return _best_s(torch, device, lambda: target.copy_(source))


def _product_s(torch: Any, device: str, dtype: str, size: int) -> float:
    generator = torch.Generator(device=device).manual_seed(0)
    left, right = (
        torch.randn(size, size, generator=generator, device=device, dtype=getattr(torch, dtype))
        for _ in range(2)
    )
    out = torch.empty_like(left)
    return _best_s(torch, device, lambda: torch.mm(left, right, out=out))


def _best_s(torch: Any, device: str, work: Callable[[], object]) -> float:
    """Seconds of the fastest of some repetitions, after one that does what happens only once."""
    work()
    timed = _on_gpu if device == "cuda" else _on_host
    return min(timed(torch, work) for _ in range(_REPEATS))


def _on_gpu(torch: Any, work: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def _on_host(torch: Any, work: Callable[[], object]) -> float:  # noqa: ARG001  # as the other clock is called
    begun = time.perf_counter()
    work()
    return max(time.perf_counter() - begun, 1e-9)
