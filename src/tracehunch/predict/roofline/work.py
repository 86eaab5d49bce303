"""Attention's work by backend: which of the counts of `facts.work.attention` it runs."""

from tracehunch.facts.work import AttentionDims, AttentionWork, causal_pairs
from tracehunch.facts.work import attention_work as work_of
from tracehunch.predict.roofline.dims import UNFUSED, element_bytes

__all__ = ["AttentionWork", "attention_work", "causal_pairs", "executed_flops"]


def attention_work(
    dims: AttentionDims,
    dtype: str,
    causal: bool,
    *,
    backward: bool = False,
    training: bool = False,
    saved_weights: bool = False,
    lower_right: bool = False,
) -> AttentionWork:
    """Return the work of a forward, or of a backward; causal as `is_causal` means it, from the top left.

    With `lower_right` the triangle ends bottom right. `training` adds the log-sum-exp that a forward writes
    for its backward. `saved_weights` is a backward that reads the weights of the forward in place of
    computing them again (naive, math).
    """
    return work_of(
        dims,
        element_bytes(dtype),
        "none" if not causal else "lower-right" if lower_right else "upper-left",
        backward=backward,
        training=training,
        saved_weights=saved_weights,
    )


def executed_flops(backend: str, dims: AttentionDims, causal: bool, *, backward: bool = False) -> int:
    """Return the matrix-product FLOPs that a backend runs: an unfused one computes the masked scores, too."""
    unfused = backend in UNFUSED
    work = attention_work(
        dims, "bf16", causal and not unfused, backward=backward, saved_weights=unfused and backward
    )
    return work.flops
