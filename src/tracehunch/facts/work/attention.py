"""Attention's work: FLOPs by their conventions, and the least bytes between the GPU and its memory.

Only matrix products count as FLOPs, a multiply and an add as two. The softmax is some five operations a score
on other units and is left out, as FlashAttention, Triton's benchmarks and torch's counter leave it out.

Of a causal call there are three counts, and an "achieved TFLOP/s" is worth nothing without saying which:
    exact    the (query, key) pairs on and below the diagonal, from the top left as `is_causal` means it;
    halved   queries x keys / 2, as FlashAttention's and Triton's benchmarks count: short by about 1/queries;
    full     queries x keys, as `torch.utils.flop_counter` counts, which does not look at `is_causal`.
A fused kernel does about the exact count, an unfused implementation the full one.

The backward of a fused kernel computes the scores again: five products, 2.5 times the forward where value and
head dimension are the same. One that kept the weights has four, twice the forward.
"""

from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.errors import GuessError

Diagonal = Literal["none", "upper-left", "lower-right"]
"""Where the diagonal of a causal mask starts, or ends; "none" for no mask that a kernel could skip."""

STATISTIC_BYTES: Final = 4
"""Of the fp32 log-sum-exp of a row, and of its dot product of output and gradient."""


@dataclass(frozen=True, slots=True)
class AttentionDims:
    """Sizes of q (batch, heads, queries, head_dim), k (batch, kv_heads, keys, head_dim), v (..., value_dim).

    `kv_heads` and `value_dim` are those of q where they are not given.
    """

    batch: int
    heads: int
    queries: int
    keys: int
    head_dim: int
    kv_heads: int = 0
    value_dim: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kv_heads", self.kv_heads or self.heads)
        object.__setattr__(self, "value_dim", self.value_dim or self.head_dim)
        for name in ("batch", "heads", "kv_heads", "queries", "keys", "head_dim", "value_dim"):
            if getattr(self, name) < 1:
                raise GuessError(f"{name} {getattr(self, name)} is no size", "", "it must be at least 1")
        if self.heads % self.kv_heads:
            raise GuessError(
                f"{self.heads} heads cannot share {self.kv_heads} key/value heads",
                "every key/value head serves the same number of query heads",
            )

    @property
    def groups(self) -> int:
        """Query heads that share a key/value head."""
        return self.heads // self.kv_heads

    @property
    def rows(self) -> int:
        """Rows of the score matrices (batch, heads, queries)."""
        return self.batch * self.heads * self.queries

    @property
    def scores(self) -> int:
        """Elements of the score matrices (batch, heads, queries, keys)."""
        return self.rows * self.keys

    @property
    def q_elements(self) -> int:
        """Elements of q."""
        return self.rows * self.head_dim

    @property
    def k_elements(self) -> int:
        """Elements of k, before its heads are repeated."""
        return self.batch * self.kv_heads * self.keys * self.head_dim

    @property
    def v_elements(self) -> int:
        """Elements of v, before its heads are repeated."""
        return self.batch * self.kv_heads * self.keys * self.value_dim

    @property
    def out_elements(self) -> int:
        """Elements of the output (batch, heads, queries, value_dim)."""
        return self.rows * self.value_dim

    def __str__(self) -> str:
        return f"({self.batch},{self.heads},{self.queries}x{self.keys},{self.head_dim})"


@dataclass(frozen=True, slots=True)
class AttentionWork:
    """What has to be computed and moved for one attention call, forward or backward.

    `pairs` are the (query, key) pairs of one head that the mask leaves. FLOPs by convention: see the module.
    `least_bytes` reads every input once and writes every output once.
    """

    pairs: int
    flops: int
    halved_flops: int
    full_flops: int
    least_bytes: int

    @property
    def intensity(self) -> float:
        """FLOPs (exact) per byte that must be moved."""
        return self.flops / self.least_bytes


def causal_pairs(queries: int, keys: int) -> int:
    """Return the pairs on and below the diagonal that starts top left: query i sees keys 0 to i."""
    square = min(queries, keys)
    return square * (square + 1) // 2 + max(queries - keys, 0) * keys


def lower_right_pairs(queries: int, keys: int) -> int:
    """Return the pairs on and below the diagonal that ends bottom right: the last query sees every key."""
    square = min(queries, keys)
    return square * (square + 1) // 2 + max(keys - queries, 0) * queries


def attention_work(
    dims: AttentionDims,
    element_bytes: int,
    diagonal: Diagonal = "none",
    *,
    backward: bool = False,
    training: bool = False,
    saved_weights: bool = False,
) -> AttentionWork:
    """Return the work of a forward, or of a backward.

    `training` adds the log-sum-exp that a forward writes for its backward. `saved_weights` is a backward
    that reads the weights of the forward in place of computing them again (naive, math).
    """
    full = dims.queries * dims.keys
    count = {"upper-left": causal_pairs, "lower-right": lower_right_pairs}.get(diagonal)
    pairs = full if count is None else count(dims.queries, dims.keys)
    per_pair = _flops_per_pair(dims, backward=backward, saved_weights=saved_weights)
    calls = dims.batch * dims.heads
    return AttentionWork(
        pairs=pairs,
        flops=calls * pairs * per_pair,
        halved_flops=calls * full * per_pair // 2 if count else calls * full * per_pair,
        full_flops=calls * full * per_pair,
        least_bytes=_backward_bytes(dims, element_bytes, saved_weights=saved_weights)
        if backward
        else _forward_bytes(dims, element_bytes, training=training),
    )


def _flops_per_pair(dims: AttentionDims, *, backward: bool, saved_weights: bool) -> int:
    """FLOPs of one (query, key) pair of one head: two a multiply-add."""
    scores, values = 2 * dims.head_dim, 2 * dims.value_dim
    if not backward:
        return scores + values
    return (2 if saved_weights else 3) * scores + 2 * values


def _forward_bytes(dims: AttentionDims, e: int, *, training: bool) -> int:
    tensors = dims.q_elements + dims.k_elements + dims.v_elements + dims.out_elements
    return e * tensors + (STATISTIC_BYTES * dims.rows if training else 0)


def _backward_bytes(dims: AttentionDims, e: int, *, saved_weights: bool) -> int:
    # q, k, v and the output's gradient are read, the gradients of q, k and v written
    moved = e * (2 * (dims.q_elements + dims.k_elements + dims.v_elements) + dims.out_elements)
    if saved_weights:
        return moved + e * dims.scores
    return moved + e * dims.out_elements + STATISTIC_BYTES * dims.rows
