"""Grouped-query heads for the variants that know nothing of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracehunch.attention.variant import Inputs


def repeat_heads(inputs: Inputs) -> tuple[Any, Any]:
    """Keys and values with one head for each query head; themselves where they have them already."""
    if inputs.groups == 1:
        return inputs.k, inputs.v
    return inputs.k.repeat_interleave(inputs.groups, dim=1), inputs.v.repeat_interleave(inputs.groups, dim=1)
