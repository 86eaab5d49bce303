"""FLOPs of attention by their conventions, and its least bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.errors import GuessError
from tracehunch.facts.work import AttentionDims, attention_work, causal_pairs, lower_right_pairs

SEED = AttentionDims(8, 16, 1024, 1024, 64)


@given(st.integers(1, 30), st.integers(1, 30))
def test_pairs_that_a_causal_mask_leaves(queries: int, keys: int) -> None:
    pairs = [(i, j) for i in range(queries) for j in range(keys)]
    assert causal_pairs(queries, keys) == sum(j <= i for i, j in pairs)
    assert lower_right_pairs(queries, keys) == sum(j <= i + keys - queries for i, j in pairs)


def test_the_three_counts_of_a_causal_call() -> None:
    work = attention_work(SEED, 2, "upper-left")
    full = 4 * 8 * 16 * 1024 * 1024 * 64
    assert (work.full_flops, work.halved_flops) == (full, full // 2)
    assert work.flops == pytest.approx(full / 2 * (1 + 1 / 1024), rel=1e-12)
    assert attention_work(SEED, 2).flops == full


def test_full_flops_are_torchs() -> None:
    counter = pytest.importorskip("torch.utils.flop_counter")
    dims = AttentionDims(2, 8, 128, 256, 64, value_dim=32)
    q, k, v = (2, 8, 128, 64), (2, 8, 256, 64), (2, 8, 256, 32)
    assert counter.sdpa_flop_count(q, k, v) == attention_work(dims, 2, "upper-left").full_flops
    backward = attention_work(dims, 2, backward=True)
    assert counter.sdpa_backward_flop_count((2, 8, 128, 32), q, k, v) == backward.flops


def test_the_backward_computes_the_scores_again_or_not() -> None:
    forward = attention_work(SEED, 2, "upper-left").flops
    assert attention_work(SEED, 2, "upper-left", backward=True).flops == 2.5 * forward
    assert attention_work(SEED, 2, "upper-left", backward=True, saved_weights=True).flops == 2 * forward


def test_shared_heads_are_read_once() -> None:
    grouped = AttentionDims(8, 16, 1024, 1024, 64, kv_heads=4)
    assert attention_work(grouped, 2).flops == attention_work(SEED, 2).flops
    assert attention_work(grouped, 2).least_bytes == 2 * 8 * 1024 * 64 * (16 + 4 + 4 + 16)
    assert (
        attention_work(SEED, 2, training=True).least_bytes - attention_work(SEED, 2).least_bytes
        == 4 * 8 * 16 * 1024
    )


@pytest.mark.parametrize("sizes", [(0, 1, 1, 1, 1), (1, 3, 1, 1, 1, 2), (1, 1, 1, -1, 1)])
def test_sizes_that_are_none(sizes: tuple[int, ...]) -> None:
    with pytest.raises(GuessError):
        AttentionDims(*sizes)
