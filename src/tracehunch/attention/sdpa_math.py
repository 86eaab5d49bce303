"""SDPA pinned to the math backend: the formula again, composed by PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.attention.sdpa import forward, one_call
from tracehunch.attention.variant import SDPA_LABEL, DeviceKind, Variant

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim


def textbook(workload: Workload, device: DeviceKind) -> tuple[Claim, ...]:
    """One call, so one kernel: it takes a trace to see that it is not."""
    return one_call(workload, device, "math")


SDPA_MATH = Variant(
    "sdpa_math",
    "one call, pinned to PyTorch's own composition of operations",
    SDPA_LABEL,
    forward,
    textbook,
    "MATH",
    score_matrices=2,  # an operation's input and its output
)
