"""Memory: what there is, what attention needs, and how running out of it is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehunch.units import size

if TYPE_CHECKING:
    from tracehunch.attention.variant import Variant
    from tracehunch.attention.workload import Workload

_CPU_MESSAGES = ("can't allocate memory", "not enough memory")
"""What the CPU allocator's RuntimeError says on Linux and on Windows."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that the device, or the CPU, has no memory left."""
    import torch  # noqa: PLC0415  # an optional dependency

    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(message in str(error) for message in _CPU_MESSAGES)


def out_of_memory(variant: Variant, workload: Workload) -> str:
    """Tell what to do when a variant found no memory."""
    needs = f"; it holds {_scores(variant, workload)}" if variant.score_matrices else ""
    return f"out of memory{needs}; try a smaller --batch, --heads or --seq"


def shortage(variant: Variant, workload: Workload) -> str | None:
    """Why a variant would not fit in memory, told before the system kills the process; None if it may."""
    available = available_bytes()
    needed = variant.score_matrices * workload.scores_bytes
    if available is None or needed <= available:
        return None
    return (
        f"not enough memory: it holds {_scores(variant, workload)}, and {size(available)} are available; "
        "try a smaller --batch, --heads or --seq"
    )


def available_bytes() -> int | None:
    """Memory that can be had without swapping; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _scores(variant: Variant, workload: Workload) -> str:
    each = size(workload.scores_bytes)
    return f"{variant.score_matrices} score matrices of {each} each at least"
