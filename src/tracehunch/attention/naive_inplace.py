"""The naive variant with its mask filled in place: ``masked_fill_`` instead of ``masked_fill``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.attention.repeat import repeat_heads
from tracehunch.attention.textbook import operations, unfused_steps
from tracehunch.attention.variant import NAIVE_LABEL, DeviceKind, Inputs, Variant

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim


def forward(inputs: Inputs) -> Any:
    """One forward; the mask is written into the scores that are there."""
    k, v = repeat_heads(inputs)
    scores = inputs.q @ k.transpose(-2, -1)
    scores = scores * inputs.scale
    if inputs.mask is not None:
        scores.masked_fill_(inputs.mask, float("-inf"))
    return scores.softmax(dim=-1) @ v


def textbook(workload: Workload, device: DeviceKind) -> tuple[Claim, ...]:
    """One kernel for each operation of the formula, as for the naive variant."""
    return operations(NAIVE_LABEL, unfused_steps(workload), workload, device)


NAIVE_INPLACE = Variant(
    "naive_inplace",
    "masked_fill_ for masked_fill: the scores change in place",
    NAIVE_LABEL,
    forward,
    textbook,
    takes_mask=True,
    score_matrices=2,  # an operation's input and its output
)
