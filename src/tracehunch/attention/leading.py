"""Which op of attention by hand leads by GPU time, where one clearly does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline import AttentionDims, unfused_steps
from tracehunch.predict.roofline.coefficients import coefficients
from tracehunch.predict.roofline.machine import machine
from tracehunch.predict.roofline.unfused import step_us

if TYPE_CHECKING:
    from tracehunch.attention.workload import Workload
    from tracehunch.hardware import Gpu

_OPS: Final = {
    "q k^T": "matmul", "weights v": "matmul", "scale": "mul", "softmax": "softmax",
    "copy for masked_fill": "masked_fill", "masked_fill": "masked_fill",
}  # fmt: skip
"""Step of the model -> the op that people call, in whose time it counts."""

_CLEAR: Final = 1.3
"""How many times the second's time the leader must take: single steps are off by a quarter at times."""


def leading_op(variant: str, workload: Workload, gpu: Gpu) -> str | None:
    """Return the op that takes the most GPU time of a naive variant; None where it is close, or unknown."""
    word = dtype_word(workload.dtype)
    seen = machine(gpu, word, None)
    costs = coefficients()
    dims = AttentionDims(
        workload.batch, workload.heads, workload.seq, workload.seq, workload.head_dim, workload.kv_heads,
        workload.head_dim,
    )  # fmt: skip
    steps = unfused_steps(variant, dims, word, workload.causal)
    if seen is None or any(step.name not in _OPS or step.kind not in costs.steps for step in steps):
        return None
    time_us: dict[str, float] = {}
    for step in steps:
        op = _OPS[step.name]
        time_us[op] = time_us.get(op, 0.0) + step_us(step, costs.steps[step.kind], seen)
    first, second = sorted(time_us, key=time_us.__getitem__, reverse=True)[:2]
    return first if time_us[first] >= _CLEAR * time_us[second] else None
