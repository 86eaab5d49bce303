"""Backends' own operations that a program calls: what they launch, and what SDPA would not give them."""

from dataclasses import replace

import pytest

from tracehunch.facts.work import lower_right_pairs
from tracehunch.predict.environment import environment
from tracehunch.predict.ops.tensor import tensor
from tracehunch.predict.program.calls import SDPA, OpCall
from tracehunch.predict.program.direct import direct_call
from tracehunch.predict.program.one_call import guess_call
from tracehunch.predict.program.sdpa_calls import refusals
from tracehunch.predict.sdpa import sdpa_call

H200 = environment("h200", "2.13")
B, H, L, S, D = 2, 8, 128, 512, 64
Q, K = tensor((B, H, L, D), "bf16"), tensor((B, H, S, D), "bf16")
TRIANGLE = {"custom_mask_type": 2, "dropout_p": 0.0, "compute_log_sumexp": False}


def rows_first(length, dtype="bf16"):
    return tensor((B, length, H, D), dtype)


def guessed(op, tensors, env=H200, pinned=None, **options):
    call = OpCall(f"aten::{op}", tensors=tensors, options=options, pinned=pinned)
    return guess_call(direct_call(call, trains=False), env)


def launched(guess):
    return [(kernel.hint, kernel.op) for kernel in guess.activities.kernels]


@pytest.mark.parametrize(
    ("op", "backend", "options"),
    [
        ("_scaled_dot_product_flash_attention", "flash", {"is_causal": True}),
        ("_scaled_dot_product_efficient_attention", "efficient", {"compute_log_sumexp": False}),
        ("_scaled_dot_product_cudnn_attention", "cudnn", {"compute_log_sumexp": False}),
        ("_efficient_attention_forward", "efficient", TRIANGLE | {"cu_seqlens_q": None}),
        ("_flash_attention_forward", "flash", {"is_causal": True, "max_q": 256, "max_k": 256}),
    ],
)
def test_launches_are_those_of_sdpa_pinned_to_the_backend(op, backend, options):
    whole = op.startswith("_scaled")
    one = tensor((B, H, 256, D), "bf16") if whole else rows_first(256)
    guess = guessed(op, (one,) * 3, **options)
    causal = bool(options.get("is_causal") or options.get("custom_mask_type"))
    asked = sdpa_call(B, H, 256, D, is_causal=causal, layout="bhsd" if whole else "bshd")
    pinned = guess_call(OpCall(SDPA, sdpa=asked, pinned=(backend,)), H200)
    assert guess.sdpa.ran == backend
    assert launched(guess) == launched(pinned)
    assert guess.activities.flops == pinned.activities.flops
    assert f"aten::{op} is called itself" in refusals(guess.sdpa)[0]


@pytest.mark.parametrize(
    ("op", "tensors", "options"),
    [
        ("_scaled_dot_product_flash_attention", (Q, K, K), {"is_causal": True}),
        ("_efficient_attention_forward", (rows_first(L), rows_first(S), rows_first(S)), TRIANGLE),
    ],
)
def test_triangle_that_ends_bottom_right_has_its_pairs(op, tensors, options):
    guess = guessed(op, tensors, **options)
    assert guess.activities.flops == B * H * 4 * D * lower_right_pairs(L, S)
    assert guess.call.sdpa.lower_right


def test_reasons_say_why_it_is_not_flash():
    tensors = (rows_first(L, "fp32"), *(rows_first(S, "fp32"),) * 2)
    said = refusals(guessed("_efficient_attention_forward", tensors, **TRIANGLE).sdpa)
    assert said[1].startswith("flash: dtype float32")
    said = refusals(guessed("_efficient_attention_forward", tensors, pinned=("efficient",), **TRIANGLE).sdpa)
    assert said[1].startswith("flash: switched off")


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ((tensor((B, H, L, 100), "bf16"),) * 3, "head dim 100, which SDPA would pad to a multiple of 8"),
        ((tensor((B, H, L, D), "fp32"),) * 3, "dtype float32"),
    ],
)
def test_what_sdpa_would_not_give_a_backend_cannot_be_told(tensors, words):
    guess = guessed("_scaled_dot_product_flash_attention", tensors)
    assert guess.activities.kernels is None
    assert guess.parts[0].op == guess.call.op
    assert words in refusals(guess.sdpa)[0]


def test_packed_sequences_and_windows_are_no_such_call():
    cu = tensor((3,), "int32")
    packed = OpCall("aten::_flash_attention_forward", tensors=(rows_first(L),) * 3 + (cu, cu))
    assert direct_call(packed, trains=False) is None
    window = replace(packed, tensors=packed.tensors[:3], options={"window_size_left": 64})
    assert direct_call(window, trains=False) is None
