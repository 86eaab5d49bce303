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

from tracehunch.predict.roofline.dims import UNFUSED, AttentionDims, element_bytes

_STATISTIC = 4  # bytes of the fp32 log-sum-exp, and of a row's dot product of output and gradient


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


def attention_work(
    dims: AttentionDims,
    dtype: str,
    causal: bool,
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
    pairs = causal_pairs(dims.queries, dims.keys) if causal else full
    per_pair = _flops_per_pair(dims, backward=backward, saved_weights=saved_weights)
    calls = dims.batch * dims.heads
    return AttentionWork(
        pairs=pairs,
        flops=calls * pairs * per_pair,
        halved_flops=calls * full * per_pair // 2 if causal else calls * full * per_pair,
        full_flops=calls * full * per_pair,
        least_bytes=_backward_bytes(dims, dtype, saved_weights=saved_weights)
        if backward
        else _forward_bytes(dims, dtype, training=training),
    )


def executed_flops(backend: str, dims: AttentionDims, causal: bool, *, backward: bool = False) -> int:
    """Return the matrix-product FLOPs that a backend runs: an unfused one computes the masked scores, too."""
    unfused = backend in UNFUSED
    work = attention_work(
        dims, "bf16", causal and not unfused, backward=backward, saved_weights=unfused and backward
    )
    return work.flops


def _flops_per_pair(dims: AttentionDims, *, backward: bool, saved_weights: bool) -> int:
    """FLOPs of one (query, key) pair of one head: two a multiply-add."""
    scores, values = 2 * dims.head_dim, 2 * dims.value_dim
    if not backward:
        return scores + values
    return (2 if saved_weights else 3) * scores + 2 * values


def _forward_bytes(dims: AttentionDims, dtype: str, *, training: bool) -> int:
    e, rows = element_bytes(dtype), dims.batch * dims.heads * dims.queries
    tensors = dims.q_elements + dims.k_elements + dims.v_elements + dims.out_elements
    return e * tensors + (_STATISTIC * rows if training else 0)


def _backward_bytes(dims: AttentionDims, dtype: str, *, saved_weights: bool) -> int:
    e, rows = element_bytes(dtype), dims.batch * dims.heads * dims.queries
    # q, k, v and the output's gradient are read, the gradients of q, k and v written
    moved = e * (2 * (dims.q_elements + dims.k_elements + dims.v_elements) + dims.out_elements)
    if saved_weights:
        return moved + e * dims.scores
    return moved + e * dims.out_elements + _STATISTIC * rows
