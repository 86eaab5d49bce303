"""Workload: the attention call that every variant computes, and whether it can exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from tracehunch.errors import CaptureError

Dtype = Literal["bfloat16", "float16", "float32"]

DTYPES: Final[tuple[Dtype, ...]] = get_args(Dtype)
DTYPE_BYTES: Final[dict[Dtype, int]] = {"bfloat16": 2, "float16": 2, "float32": 4}
HALF_DTYPES: Final[frozenset[Dtype]] = frozenset({"bfloat16", "float16"})

_MOST_NAMED: Final = 1_024
"""Up to which the numbers of key/value heads that fit are listed."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One forward: q is (batch, heads, seq, head_dim), k and v are (batch, kv_heads, seq, head_dim)."""

    batch: int
    heads: int
    seq: int
    head_dim: int
    kv_heads: int
    dtype: Dtype = "bfloat16"
    causal: bool = True

    @property
    def groups(self) -> int:
        """Query heads that share one key and value head; 1 without grouped-query attention."""
        return self.heads // self.kv_heads

    @property
    def scores_bytes(self) -> int:
        """Bytes of one score matrix, (batch, heads, seq, seq), which the naive variants hold several of."""
        return self.batch * self.heads * self.seq * self.seq * DTYPE_BYTES[self.dtype]

    @property
    def shape(self) -> str:
        """``(8,16,1024,64)``, with the key and value heads where they differ."""
        shape = f"({self.batch},{self.heads},{self.seq},{self.head_dim})"
        return shape if self.groups == 1 else f"{shape} with {self.kv_heads} key/value heads"

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype} {'causal' if self.causal else 'full'}"


def check(workload: Workload) -> Workload:
    """Give back a workload that can exist.

    Raises:
        CaptureError: no attention has these sizes.

    """
    for option, size in (
        ("--batch", workload.batch),
        ("--heads", workload.heads),
        ("--kv-heads", workload.kv_heads),
        ("--seq", workload.seq),
        ("--head-dim", workload.head_dim),
    ):
        if size < 1:
            raise CaptureError(
                f"{option} {size} is no size", "it must be at least 1", f"give {option} a positive number"
            )
    if workload.heads % workload.kv_heads:
        most = min(workload.heads, _MOST_NAMED)
        fitting = ", ".join(str(n) for n in range(1, most + 1) if workload.heads % n == 0)
        raise CaptureError(
            f"--heads {workload.heads} is not a multiple of --kv-heads {workload.kv_heads}",
            "every key/value head serves the same number of query heads",
            f"use --kv-heads {fitting}",
        )
    return workload
