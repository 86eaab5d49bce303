"""Attention as the formula writes it: softmax(q k^T / sqrt(d), masked) v, one operation after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.attention.repeat import repeat_heads
from tracehunch.attention.textbook import operations, unfused_steps
from tracehunch.attention.variant import NAIVE_LABEL, DeviceKind, Inputs, Variant

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim


def forward(inputs: Inputs) -> Any:
    """One forward; every operation writes a new tensor."""
    k, v = repeat_heads(inputs)
    scores = inputs.q @ k.transpose(-2, -1)
    scores = scores * inputs.scale
    if inputs.mask is not None:
        scores = scores.masked_fill(inputs.mask, float("-inf"))
    return scores.softmax(dim=-1) @ v


def textbook(workload: Workload, device: DeviceKind) -> tuple[Claim, ...]:
    """One kernel for each operation of the formula."""
    return operations(NAIVE_LABEL, unfused_steps(workload), workload, device)


NAIVE = Variant(
    "naive",
    "the formula, one operation after another",
    NAIVE_LABEL,
    forward,
    textbook,
    takes_mask=True,
    score_matrices=2,  # an operation's input and its output
)
