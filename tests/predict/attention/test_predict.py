"""Variants, backends, devices and versions: what is told, with what confidence, and what is not."""

from dataclasses import replace

import pytest

from tracehunch.errors import GuessError
from tracehunch.predict.activities import total
from tracehunch.predict.attention import VARIANTS, attention_parts, predict_attention
from tracehunch.predict.attention.cudnn import splits_keys
from tracehunch.predict.attention.flash import split_keys
from tracehunch.predict.environment import environment
from tracehunch.predict.sdpa import sdpa_call

SEED = sdpa_call(8, 16, 1024, 64, is_causal=True)
LONG = sdpa_call(2, 32, 4096, 128, is_causal=True)
NO_KERNEL = "No available kernel. Aborting execution."


def test_a100_at_the_seed_shape():
    """As published for torch on an A100: kernels and copies together."""
    env = environment("a100-80-sxm", "2.13")
    found = [predict_attention(variant, SEED, env) for variant in VARIANTS]
    assert [one.kernel_count + one.copy_count for one in found] == [6, 5, 20, 1, 1, 1, 1]
    assert "flash" in found[-1].kernels[0].library
    assert all(one.confidence != "high" for one in found)


def test_h200_at_the_seed_shape(measured_env):
    found = {variant: predict_attention(variant, SEED, measured_env) for variant in VARIANTS}
    assert [(one.kernel_count, one.copy_count) for one in found.values()] == [
        (5, 1),
        (5, 0),
        (20, 0),
        (1, 0),
        (1, 0),
        (1, 0),
        (1, 0),
    ]
    assert found["auto"].kernels == found["cudnn"].kernels
    assert found["cudnn"].memsets == 1
    assert found["flash"].confidence == "high"


def test_a_score_matrix_of_4_gib_takes_four_launches_more(measured_env):
    assert predict_attention("math", LONG, measured_env).kernel_count == 24
    assert predict_attention("naive", LONG, measured_env).kernel_count == 5


def test_a_pinned_backend_that_refuses(measured_env):
    masked = sdpa_call(2, 8, 128, 64, mask="bool")
    assert predict_attention("flash", masked, measured_env).raises == NO_KERNEL
    assert predict_attention("sdpa_flash", masked, measured_env).raises == NO_KERNEL


def test_heads_that_do_not_broadcast(measured_env):
    call = sdpa_call(2, 8, 128, 64, kv_heads=3)
    error = "The size of tensor a (8) must match the size of tensor b (3) at non-singleton dimension 1"
    assert predict_attention("naive", call, measured_env).raises == error
    assert predict_attention("auto", call, measured_env).raises == error


def test_unknown_variant(measured_env):
    with pytest.raises(GuessError, match="attention variant 'fast' is not known"):
        predict_attention("fast", SEED, measured_env)


@pytest.mark.parametrize("device", ["rocm", "mps", "xpu"])
def test_other_devices_are_a_cannot_tell(device):
    env = environment(None, "2.13", device=device)
    for variant in VARIANTS:
        found = predict_attention(variant, SEED, env)
        if (device, variant) == ("rocm", "cudnn"):  # there is none
            assert found.raises == "No available kernel. Aborting execution."
        else:
            assert found.kernels is None


def test_a_cpu_runs_no_kernels():
    found = predict_attention("auto", SEED, environment(None, "2.13", device="cpu"))
    assert found.empty
    assert found.reasons


def test_no_elements(measured_env):
    assert predict_attention("auto", sdpa_call(0, 8, 128, 64), measured_env).kernels is None


def test_without_a_gpu_the_split_is_not_known():
    env = environment(None, "2.13", compute_capability=(8, 0))
    assert predict_attention("flash", sdpa_call(1, 8, 1, 64, keys=4096), env).kernels is None
    assert predict_attention("flash", sdpa_call(1, 8, 1, 64, keys=128), env).kernel_count == 1


def test_blackwells_cudnn_memsets_are_not_known():
    found = predict_attention("auto", SEED, environment("b200", "2.13"))
    assert (found.kernel_count, found.memsets, found.confidence) == (1, None, "low")


def test_other_flash_attention_versions(measured_env):
    env = replace(measured_env, flash_version="FA3")
    assert predict_attention("flash", SEED, env).kernels is None


def test_old_versions_are_told_with_low_confidence():
    assert predict_attention("flash", SEED, environment("a100-80-sxm", "2.7")).confidence == "low"


def test_grouped_heads_on_the_efficient_backend_of_2_14():
    call = sdpa_call(2, 8, 128, 64, kv_heads=2, enable_gqa=True)
    found = predict_attention("efficient", call, environment("a100-80-sxm", "2.14"))
    assert found.raises is None
    assert found.confidence == "low"


def test_steps_add_up(measured_env):
    for variant in VARIANTS:
        for backward in (False, True):
            steps = [
                part.activities for part in attention_parts(variant, SEED, measured_env, backward=backward)
            ]
            whole = predict_attention(variant, SEED, measured_env, backward=backward)
            assert replace(total(steps), confidence="low") == replace(whole, confidence="low")


def test_generation_of_the_efficient_kernels():
    half = sdpa_call(2, 8, 128, 64, dtype="float16")
    hints = {
        gpu: predict_attention("efficient", half, environment(gpu, "2.13")).kernels[0].hint
        for gpu in ("t4", "v100-sxm2-32gb", "a10g", "h200", "b200")
    }
    assert {gpu: hint[-4:] for gpu, hint in hints.items()} == {
        "t4": "sm75",
        "v100-sxm2-32gb": "sm70",
        "a10g": "sm80",
        "h200": "sm80",
        "b200": "sm80",
    }


@pytest.mark.parametrize(
    ("shape", "keys", "splits"),
    [
        ((8, 16, 1024, 64), 1024, 1),  # enough blocks
        ((1, 8, 777, 32), 777, 2),
        ((16, 4, 128, 256), 128, 2),
        ((8, 8, 1, 64), 128, 1),  # one tile of keys
    ],
)
def test_flash_splits_on_an_h200(measured_env, shape, keys, splits):
    assert split_keys(sdpa_call(*shape, keys=keys), measured_env) == splits


def test_cudnn_splits_the_keys_of_one_query(measured_env):
    def decoding(batch, heads, kv_heads, keys):
        return sdpa_call(batch, heads, 1, 128, kv_heads=kv_heads, keys=keys, enable_gqa=heads != kv_heads)

    assert splits_keys(decoding(8, 32, 8, 1000), measured_env)
    assert not splits_keys(decoding(16, 32, 8, 4096), measured_env)  # 128 of 132 SMs have work
    assert not splits_keys(decoding(1, 8, 8, 512), measured_env)


def test_dropout_keeps_flash_from_splitting(measured_env):
    call = sdpa_call(1, 4, 128, 64, keys=4096)
    assert split_keys(call, measured_env) > 1
    assert split_keys(replace(call, dropout=0.1), measured_env) == 1


def test_fused_work_counts_the_pairs_that_a_causal_mask_leaves(measured_env):
    full = predict_attention("flash", sdpa_call(8, 16, 1024, 64), measured_env)
    causal = predict_attention("flash", SEED, measured_env)
    assert full.flops == 4 * 8 * 16 * 1024 * 1024 * 64
    assert causal.flops * 2 == full.flops * 1025 // 1024
    assert full.bytes == 4 * 2 * 8 * 16 * 1024 * 64
