"""What the SDPA variants share: the call, and the guess that one fused kernel does it all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.attention.textbook import backend, operations
from tracehunch.attention.variant import SDPA_LABEL, DeviceKind, Inputs

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim


def forward(inputs: Inputs) -> Any:
    """One forward of ``scaled_dot_product_attention``, under whichever backends are enabled."""
    from torch.nn.functional import scaled_dot_product_attention  # noqa: PLC0415  # an optional dependency

    grouped = {"enable_gqa": True} if inputs.groups > 1 else {}
    return scaled_dot_product_attention(inputs.q, inputs.k, inputs.v, is_causal=inputs.causal, **grouped)


def one_call(workload: Workload, device: DeviceKind, pinned: str = "") -> tuple[Claim, ...]:
    """One call is one kernel, by the backend it is pinned to."""
    claims = operations(SDPA_LABEL, ("scaled_dot_product_attention",), workload, device)
    return (*claims, backend(SDPA_LABEL, pinned)) if pinned else claims
