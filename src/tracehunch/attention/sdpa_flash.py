"""SDPA pinned to the FlashAttention backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.attention.sdpa import forward, one_call
from tracehunch.attention.variant import SDPA_LABEL, DeviceKind, Variant

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim


def textbook(workload: Workload, device: DeviceKind) -> tuple[Claim, ...]:
    """One fused kernel."""
    return one_call(workload, device, "flash")


SDPA_FLASH = Variant(
    "sdpa_flash", "pinned to FlashAttention", SDPA_LABEL, forward, textbook, "FLASH_ATTENTION"
)
