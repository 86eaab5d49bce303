"""Time that a scope's kernels spend in communication between ranks, waiting for them included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tracehunch.facts.model import ScopeFacts
    from tracehunch.kernels.identity import Identity

_ALGORITHM: Final = "collective"


def is_collective(identity: Identity | None) -> bool:
    """Whether a kernel is one of NCCL, RCCL or their like."""
    return identity is not None and identity.algorithm == _ALGORITHM


def collective_us(scope: ScopeFacts) -> float:
    """Return microseconds a call in collectives."""
    return sum(use.gpu_time_us for use in scope.kernels if is_collective(use.identity))
