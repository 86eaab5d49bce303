"""The textbook guess: what the mathematics of attention says a profile of one forward shows.

One operation is one kernel (on a CPU: one op without children), nothing is copied, and 16-bit matrix products
run on tensor cores. Memsets are not claimed: the mathematics knows nothing of a library's workspace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.attention.workload import HALF_DTYPES, Workload
from tracehunch.guess import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.variant import DeviceKind


def operations(label: str, steps: Sequence[str], workload: Workload, device: DeviceKind) -> tuple[Claim, ...]:
    """Claims for a forward that does these operations, one after another."""
    why = f"{len(steps)} operation{'s' * (len(steps) != 1)}: {', '.join(steps)}"
    if device == "cpu":
        return (Claim("leaf_ops", "==", len(steps), label, "textbook", why, unit="count"),)
    return (
        Claim("kernels", "==", len(steps), label, "textbook", why, unit="count"),
        Claim("copies", "==", 0, label, "textbook", "nothing has to be copied", unit="count"),
        *_tensor_cores(label, workload),
    )


def backend(label: str, name: str) -> Claim:
    """Claim that SDPA runs on the backend it is pinned to."""
    return Claim("sdpa.backend", "==", name, label, "textbook", f"pinned to {name}", unit="text")


def unfused_steps(workload: Workload) -> tuple[str, ...]:
    """List the operations of attention as in the formula; grouped heads first repeat keys and values."""
    repeat = ("repeat keys", "repeat values") if workload.groups > 1 else ()
    mask = ("mask",) if workload.causal else ()
    return (*repeat, "matmul", "scale", *mask, "softmax", "matmul")


def _tensor_cores(label: str, workload: Workload) -> tuple[Claim, ...]:
    if workload.dtype not in HALF_DTYPES:
        return ()  # whether float32 products use TF32 is a setting, not mathematics
    why = f"matrix products of {workload.dtype}"
    return (Claim("tensor_cores", "==", "used", label, "textbook", why, unit="text"),)
