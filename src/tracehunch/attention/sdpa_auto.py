"""SDPA with nothing pinned: PyTorch's dispatcher picks the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.attention.sdpa import forward, one_call
from tracehunch.attention.variant import SDPA_LABEL, DeviceKind, Variant

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim


def textbook(workload: Workload, device: DeviceKind) -> tuple[Claim, ...]:
    """One fused kernel, whichever backend it is."""
    return one_call(workload, device)


SDPA_AUTO = Variant("sdpa_auto", "nothing pinned: PyTorch picks the backend", SDPA_LABEL, forward, textbook)
