"""Random inputs of a workload on a device, the same for every variant."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracehunch.attention.variant import DeviceKind, Inputs

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload

SEED = 0


def make_inputs(workload: Workload, device: DeviceKind) -> Inputs:
    """Draw standard normal q (B, H, S, D), k and v (B, Hkv, S, D), without a mask."""
    import torch  # noqa: PLC0415  # an optional dependency

    generator = torch.Generator(device=device).manual_seed(SEED)
    dtype = getattr(torch, workload.dtype)

    def normal(heads: int) -> torch.Tensor:
        size = (workload.batch, heads, workload.seq, workload.head_dim)
        return torch.randn(size, generator=generator, device=device, dtype=dtype)

    return Inputs(
        q=normal(workload.heads),
        k=normal(workload.kv_heads),
        v=normal(workload.kv_heads),
        mask=None,
        scale=workload.head_dim**-0.5,
        groups=workload.groups,
        causal=workload.causal,
    )


def with_mask(inputs: Inputs) -> Inputs:
    """Give the same inputs with the causal mask as a tensor, (S, S) boolean, True above the diagonal."""
    import torch  # noqa: PLC0415  # an optional dependency

    seq = inputs.q.shape[2]
    mask = torch.ones(seq, seq, dtype=torch.bool, device=inputs.q.device).triu_(1)
    return replace(inputs, mask=mask)
