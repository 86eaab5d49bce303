"""A variant's guess: its textbook claims and those of the user, with the context they were made for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.guess import Claim, Guess

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.outcome import Device
    from tracehunch.attention.variant import Variant
    from tracehunch.attention.workload import Workload


def guess_of(variant: Variant, workload: Workload, device: Device, others: Sequence[Claim] = ()) -> Guess:
    """Make the guess to seal before the variant is looked at; ``others`` are the user's own claims."""
    context = {
        "variant": variant.name,
        "workload": str(workload),
        "device": device.name,
        "torch": device.torch,
    }
    return Guess((*variant.textbook(workload, device.kind), *others), context)
