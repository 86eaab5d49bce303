"""How long scaled_dot_product_attention is expected to take in place of attention by hand."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np

from tracehunch.checks._ancestry import called_op
from tracehunch.checks._fused_time import Estimate, from_unfused_matrix_time
from tracehunch.checks._matrix import matrix_products
from tracehunch.checks._peaks import gpu_of
from tracehunch.checks._scopes import durations_us
from tracehunch.units import join

if TYPE_CHECKING:
    from tracehunch.checks._attention_by_hand import Sizes
    from tracehunch.checks._attention_work import ByHand
    from tracehunch.facts.model import Facts
    from tracehunch.hardware import Gpu
    from tracehunch.predict.roofline import AttentionTime
    from tracehunch.trace.model import Int64

Mask = Literal["none", "causal", "tensor"]

_WORDS: Final = {"c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32"}
_FLASH_HEAD_DIM: Final = 256
_CUDNN: Final = ("9", "10")
"""Major compute capabilities on which PyTorch asks cuDNN first."""


def sdpa_estimate(facts: Facts, one: ByHand, *, backward: bool = False) -> Estimate:
    """Estimate the time of one call (or of its backward) on the trace's GPU.

    The range covers the fused kernels that PyTorch may pick for such inputs. A mask over as many queries as
    keys is taken for one that fused kernels need not read: causal at the lower end, none at the upper.
    """
    gpu = gpu_of(facts)
    if gpu is None or one.sizes is None or one.dtype not in _WORDS:
        return from_unfused_matrix_time(_matrix_us(facts, one.rows), backward=backward)
    mask: Mask = "causal" if may_be_causal(one) else "tensor" if one.masked else "none"
    found = _times(gpu, _Call(one.sizes, _WORDS[one.dtype], mask, one.dropped), backward=backward)
    if not found:
        return from_unfused_matrix_time(_matrix_us(facts, one.rows), backward=backward)
    names = join(list(dict.fromkeys(name for name, _ in found)), "or")
    return Estimate(
        min(time.low_us for _, time in found),
        max(time.high_us for _, time in found),
        f"from the shapes for {names} on {gpu.name}{_MASK_WORDS if may_be_causal(one) else ''}",
    )


_MASK_WORDS: Final = (
    " (the mask causal at the lower end and absent at the upper; passed as attn_mask= it may cost more)"
)


def may_be_causal(one: ByHand) -> bool:
    """Tell whether the mask, as far as sizes show, can be the triangle that fused kernels know."""
    square = one.sizes is not None and one.sizes.queries == one.sizes.keys > 1
    return square and one.masked and not one.biased


def is_fusible(one: ByHand) -> bool:
    """Tell whether a fused kernel takes the type of the inputs; where it was not recorded, assume so."""
    return not one.dtype or one.dtype in _WORDS


class _Call(NamedTuple):
    """What the time of a fused kernel depends on."""

    sizes: Sizes
    dtype: str
    mask: Mask
    dropped: bool


@lru_cache(maxsize=256)
def _times(gpu: Gpu, call: _Call, *, backward: bool) -> list[tuple[str, AttentionTime]]:
    """Return the times of the fused kernels that may take a call."""
    from tracehunch.predict.roofline import (  # noqa: PLC0415  # thirty modules load if used
        AttentionDims,
        AttentionTime,
        attention_time,
    )

    s = call.sizes
    dims = AttentionDims(s.batch, 1, s.queries, s.keys, s.head_dim, value_dim=s.value_dim)
    mask = call.mask == "tensor"
    found = [
        (
            name,
            attention_time(
                name, dims, call.dtype, causal, gpu,
                backward=backward, mask=mask, dropout=call.dropped, clock="gpu",
            ),
        )
        for causal in ((False, True) if call.mask == "causal" else (False,))
        for name in _backends(gpu, call)
    ]  # fmt: skip
    return [(name, time) for name, time in found if isinstance(time, AttentionTime)]


def _backends(gpu: Gpu, call: _Call) -> tuple[str, ...]:
    """Fused backends that may take the call: flash takes no mask, nor float32."""
    if call.dtype == "fp32":
        return ("efficient",)
    sizes = call.sizes
    wide = max(sizes.head_dim, sizes.value_dim) > _FLASH_HEAD_DIM
    old = gpu.vendor == "nvidia" and float(gpu.compute_capability) < 8
    uneven = sizes.head_dim != sizes.value_dim
    general = "efficient" if call.mask == "tensor" or wide or old or uneven else "flash"
    cudnn = gpu.vendor == "nvidia" and gpu.compute_capability.partition(".")[0] in _CUDNN and not wide
    return (general, "cudnn") if cudnn else (general,)


def _matrix_us(facts: Facts, rows: Int64) -> float:
    """Time of the products among GPU activities, or inside the ops that a program on a CPU called."""
    tree = facts.tree
    if len(tree.trace.gpu.row):
        products = matrix_products(facts, rows)
    else:
        ops = matrix_products(facts, tree.ops)
        products = ops[np.isin(called_op(tree, ops), rows)]
    return float(np.sum(durations_us(tree.trace, products)))
