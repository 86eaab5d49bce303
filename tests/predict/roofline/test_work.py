"""FLOPs by their conventions, and least bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.errors import GuessError
from tracehunch.predict.roofline import (
    AttentionDims,
    attention_work,
    causal_pairs,
    executed_flops,
)

SEED = AttentionDims(8, 16, 1024, 1024, 64)


@given(st.integers(1, 40), st.integers(1, 40))
def test_causal_pairs_are_those_on_and_below_the_diagonal_from_the_top_left(queries: int, keys: int) -> None:
    pairs = sum(1 for query in range(queries) for key in range(keys) if key <= query)
    assert causal_pairs(queries, keys) == pairs


def test_seed_shape_by_every_convention() -> None:
    work = attention_work(SEED, "bf16", causal=True)
    assert work.full_flops == 4 * 8 * 16 * 1024 * 1024 * 64
    assert work.halved_flops == work.full_flops // 2
    assert work.flops == work.full_flops // 1024 * 1025 // 2
    assert work.flops / work.halved_flops == pytest.approx(1 + 1 / 1024)
    assert work.least_bytes == 2 * 4 * 8 * 16 * 1024 * 64
    assert (
        attention_work(SEED, "bf16", causal=True, training=True).least_bytes - work.least_bytes
        == 4 * 128 * 1024
    )


def test_without_a_mask_all_conventions_agree() -> None:
    work = attention_work(SEED, "bf16", causal=False)
    assert work.flops == work.halved_flops == work.full_flops


def test_full_flops_are_what_torch_counts() -> None:
    counter = pytest.importorskip("torch.utils.flop_counter")
    dims = AttentionDims(2, 8, 128, 256, 64, value_dim=32)
    q, k, v = (2, 8, 128, 64), (2, 8, 256, 64), (2, 8, 256, 32)
    assert counter.sdpa_flop_count(q, k, v) == attention_work(dims, "bf16", causal=True).full_flops
    backward = attention_work(dims, "bf16", causal=True, backward=True).full_flops
    assert counter.sdpa_backward_flop_count((2, 8, 128, 32), q, k, v) == backward


def test_backward_is_two_and_a_half_times_the_forward_or_twice_with_saved_weights() -> None:
    forward = attention_work(SEED, "bf16", causal=True).flops
    assert attention_work(SEED, "bf16", causal=True, backward=True).flops == 2.5 * forward
    assert attention_work(SEED, "bf16", causal=True, backward=True, saved_weights=True).flops == 2 * forward


def test_grouped_heads_change_bytes_and_not_flops() -> None:
    grouped = AttentionDims(8, 16, 1024, 1024, 64, kv_heads=4)
    assert (
        attention_work(grouped, "bf16", causal=True).flops == attention_work(SEED, "bf16", causal=True).flops
    )
    assert attention_work(grouped, "bf16", causal=True).least_bytes == 2 * 8 * 1024 * 64 * (16 + 4 + 4 + 16)


def test_decode_has_an_intensity_of_query_heads_per_key_head() -> None:
    decode = AttentionDims(4, 32, 1, 65536, 128, kv_heads=8)
    assert attention_work(decode, "bf16", causal=False).intensity == pytest.approx(32 / 8, rel=1e-2)


def test_unfused_attention_computes_the_masked_scores_too() -> None:
    exact = attention_work(SEED, "bf16", causal=True)
    assert executed_flops("flash", SEED, causal=True) == exact.flops
    assert executed_flops("math", SEED, causal=True) == exact.full_flops
    assert executed_flops("naive", SEED, causal=True, backward=True) == 2 * exact.full_flops


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 1, 1, 1, 1), "batch 0"),
        ((1, 1, 1, -2, 1), "keys -2"),
        ((1, 6, 1, 1, 1, 4), "6 heads cannot share 4"),
    ],
)
def test_sizes_that_cannot_be(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(GuessError, match=message):
        AttentionDims(*sizes)
