"""Which tensors each step of attention reads from and writes to memory, in bytes of whole tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehunch.attention.workload import DTYPE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.workload import Workload

Tensors = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One launch: what it reads and writes, by name and bytes."""

    op: str
    reads: Tensors
    writes: Tensors

    @property
    def n_bytes(self) -> int:
        """Bytes read and written."""
        return sum(n for _, n in (*self.reads, *self.writes))


def moved(steps: Sequence[Step]) -> int:
    """Return the bytes that all steps read and write."""
    return sum(step.n_bytes for step in steps)


def unfused(workload: Workload) -> list[Step]:
    """Return the steps of the formula as written: heads that share keys are repeated, a mask is filled in."""
    q, kv, heads = _sizes(workload)
    scores = ("scores", workload.scores_bytes)
    steps = []
    if workload.groups > 1:
        steps += [Step(f"repeat {name}", ((name, kv),), ((f"{name} of all heads", heads),)) for name in "kv"]
    steps.append(Step("matmul", (("q", q), ("k", heads)), (scores,)))
    steps.append(Step("scale", (scores,), (scores,)))
    if workload.causal:
        mask = ("mask", workload.seq * workload.seq)
        steps.append(Step("copy of the scores", (scores,), (scores,)))
        steps.append(Step("mask", (scores, mask), (scores,)))
    weights = ("weights", workload.scores_bytes)
    steps.append(Step("softmax", (scores,), (weights,)))
    steps.append(Step("matmul", (weights, ("v", heads)), (("output", q),)))
    return steps


def fused(workload: Workload) -> list[Step]:
    """Return the one step of a fused kernel: the scores never leave the chip."""
    q, kv, _ = _sizes(workload)
    return [Step("fused", (("q", q), ("k", kv), ("v", kv)), (("output", q),))]


def _sizes(workload: Workload) -> tuple[int, int, int]:
    """Return the bytes of q, of k as it is, and of k repeated to all heads."""
    head = workload.batch * workload.seq * workload.head_dim * DTYPE_BYTES[workload.dtype]
    return head * workload.heads, head * workload.kv_heads, head * workload.heads
