"""Each finding that can be known beforehand: where it is said, and where it must not be."""

import pytest

from tracehunch.predict.ops import tensor

ROWS = ((8, 1024, 1024), "bf16")
WIDE = ((8, 1024, 1024), "fp32")


def ids(found):
    return {one.id for one in found.findings}


def by_id(found, name):
    return next(one for one in found.findings if one.id == name)


@pytest.fixture
def by_hand(make):
    """Attention as tutorials write it, at (8, 16, 1024, 64) in bf16."""
    heads, scores = ((128, 1024, 64), "bf16"), ((128, 1024, 1024), "bf16")
    keys = tensor((128, 1024, 64), "bf16").transposed()
    return [
        make("aten::bmm", heads, keys, out=[scores], module="h.0.attn", line="gpt.py:9"),
        make("aten::mul", scores, out=[scores], options={"other": 0.125}, module="h.0.attn"),
        make("aten::masked_fill", scores, ((1024, 1024), "bool"), out=[scores], module="h.0.attn"),
        make("aten::_softmax", scores, out=[scores], options={"dim": -1}, module="h.0.attn"),
        make("aten::bmm", scores, heads, out=[heads], module="h.0.attn"),
    ]


def test_attention_by_hand_with_its_line(by_hand, guess):
    one = by_id(guess(*by_hand), "unfused-attention")
    assert one.severity == "warning"
    assert one.line == "gpt.py:9"
    assert "is_causal=True" in one.fix
    assert one.time_at_stake_us > 500


def test_a_classifier_is_no_attention(make, guess):
    logits = ((4096, 1000), "bf16")
    found = guess(
        make("aten::mm", ((4096, 512), "bf16"), ((512, 1000), "bf16"), out=[logits]),
        make("aten::_softmax", logits, out=[logits], options={"dim": -1}),
        make("aten::mm", ((4096, 1000), "bf16"), ((1000, 64), "bf16"), out=[((4096, 64), "bf16")]),
    )
    assert "unfused-attention" not in ids(guess(*found.program.calls[:2]))


def test_fp32_products_with_tf32_off_and_none_with_it_on(make, guess):
    product = make("aten::mm", ((4096, 4096), "fp32"), ((4096, 4096), "fp32"), out=[((4096, 4096), "fp32")])
    assert by_id(guess(product), "fp32-matmul").severity == "warning"
    assert "fp32-matmul" not in ids(guess(product, settings={"float32_matmul_precision": "high"}))


def test_a_cast_and_the_cast_back(make, guess):
    up = make("aten::_to_copy", ROWS, out=[WIDE], options={"dtype": "fp32"})
    down = make("aten::_to_copy", WIDE, out=[ROWS], options={"dtype": "bf16"})
    between = make("aten::relu", WIDE, out=[WIDE])
    one = by_id(guess(up, between, down), "dtype-round-trip")
    assert one.subject == "bf16 -> fp32 -> bf16"
    other = make("aten::add", WIDE, WIDE, out=[WIDE])
    assert "dtype-round-trip" not in ids(guess(up, between, other, between, down))


def test_a_norm_by_hand_is_a_note(make, guess):
    mean = ((8, 1024, 1), "fp32")
    steps = [
        make("aten::_to_copy", ROWS, out=[WIDE], options={"dtype": "fp32"}),
        make("aten::pow", WIDE, out=[WIDE], options={"exponent": 2}),
        make("aten::mean", WIDE, out=[mean], options={"dim": (-1,), "keepdim": True}),
        make("aten::rsqrt", mean, out=[mean]),
        make("aten::mul", WIDE, mean, out=[WIDE]),
        make("aten::_to_copy", WIDE, out=[ROWS], options={"dtype": "bf16"}),
    ]
    one = by_id(guess(*steps), "dtype-round-trip")
    assert (one.severity, one.subject) == ("note", "norm")


def test_a_copy_inside_masked_fill_is_hidden_and_the_in_place_form_has_none(make, guess):
    mask = ((8, 1024, 1024), "bool")
    assert by_id(guess(make("aten::masked_fill", ROWS, mask, out=[ROWS])), "hidden-copy").subject
    assert "hidden-copy" not in ids(guess(make("aten::masked_fill_", ROWS, mask, out=[ROWS])))


def test_reshape_and_contiguous_are_told_apart(make, guess):
    turned = tensor(*ROWS).transposed(1, 2)
    copy = make("aten::clone", turned, out=[ROWS], options={"memory_format": "contiguous"})
    view = make("aten::_unsafe_view", ROWS, out=[((8192, 1024), "bf16")])
    assert by_id(guess(copy, view), "hidden-copy").subject == "aten::reshape"
    found = guess(copy, make("aten::neg", ROWS, out=[ROWS]))
    assert (by_id(found, "layout-copy").severity, "hidden-copy" in ids(found)) == ("note", False)


def test_reading_values_in_a_loop_stalls_and_reading_once_hardly(make, guess):
    work = make("aten::mm", ((8192, 8192), "bf16"), ((8192, 8192), "bf16"), out=[((8192, 8192), "bf16")])
    item = make("aten::_local_scalar_dense", ((), "bf16"), line="train.py:5")
    small = make("aten::neg", ((64,), "bf16"), out=[((64,), "bf16")])
    often = by_id(guess(*[work, item] * 8), "sync-stall")
    assert (often.severity, often.line, often.count) == ("warning", "train.py:5", 8)
    once = by_id(guess(item, *[small] * 800), "sync-stall")
    assert (once.severity, once.line, once.count) == ("note", "train.py:5", 1)
    assert "nothing queued there" in once.cause
    assert "next to nothing" in once.cause


def test_what_costs_next_to_nothing_is_named_apart(make, guess):
    mask = ((8, 16), "bool")
    small = make("aten::masked_fill", ((8, 16), "bf16"), mask, out=[((8, 16), "bf16")], line="model.py:3")
    work = make("aten::mm", ((8192, 8192), "bf16"), ((8192, 8192), "bf16"), out=[((8192, 8192), "bf16")])
    found = guess(small, *[work] * 8)
    assert "hidden-copy" not in ids(found)
    assert [(one.id, one.subject, one.line) for one in found.smaller] == [
        ("hidden-copy", "aten::masked_fill", "model.py:3")
    ]
    assert by_id(guess(small), "hidden-copy").small is False


def test_large_copies_from_pageable_memory(make, guess):
    big = ((4096, 4096), "fp32")
    up = make("aten::_to_copy", big, out=[big], devices=("cpu",), options={"device": "cuda"})
    assert by_id(guess(up), "pageable-copy").severity == "warning"
    assert "sync-stall" not in ids(guess(up))


def test_an_optimizer_tensor_by_tensor_and_one_that_is_fused(make, guess):
    one = ((1024, 1024), "fp32")
    loop = [
        make(f"aten::{name}", one, *[one] * more, out=[one], phase="optimizer")
        for name, more in (("mul_", 0), ("lerp_", 1), ("addcmul_", 2), ("addcdiv_", 2)) * 1
        for _ in range(16)
    ]
    assert by_id(guess(*loop), "unfused-optimizer").count == 64
    fused = make("aten::_fused_adamw_", *[one] * 64, phase="optimizer", options={"list_lengths": {
        "self": 16, "grads": 16, "exp_avgs": 16, "exp_avg_sqs": 16}})  # fmt: skip
    assert "unfused-optimizer" not in ids(guess(fused))


def test_a_loop_over_rows_and_a_loop_over_layers(make, guess):
    row = ((1024,), "bf16")
    rows = [
        one
        for _ in range(64)
        for one in (
            make("aten::select", ROWS, out=[row], line="rows.py:3"),
            make("aten::mul", row, out=[row], options={"other": 2.0}, line="rows.py:3"),
            make("aten::copy_", row, row, out=[row], line="rows.py:3"),
        )
    ]
    one = by_id(guess(*rows), "for-loop-indexing")
    assert (one.line, "64 passes" in one.summary) == ("rows.py:3", True)
    layers = [make("aten::mm", ROWS_2D, ROWS_2D, out=[ROWS_2D], line="model.py:4")] * 64
    assert "for-loop-indexing" not in ids(guess(*layers))


ROWS_2D = ((1024, 1024), "bf16")


def test_the_math_fallback_says_what_refuses_and_what_to_do(attention, guess):
    found = guess(attention(2, 16, 512, 64, kv_heads=4, dtype="float32", enable_gqa=True, module="attn"))
    one = by_id(found, "sdpa-math-fallback")
    assert one.severity == "warning"
    assert "flash" in one.cause
    assert one.modules == ("attn",)
    assert "sdpa-math-fallback" not in ids(guess(attention(2, 16, 512, 64)))


def test_convolutions_in_channels_first_are_turned_and_in_channels_last_not(make, guess):
    image, weight = ((32, 64, 56, 56), "fp16"), ((64, 64, 3, 3), "fp16")
    options = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "transposed": False, "groups": 1}
    first = make("aten::convolution", image, weight, out=[image], options=options)
    assert by_id(guess(first), "layout-copy").subject == "aten::convolution"
    last = [tensor(*one, (shape[1] * shape[2] * shape[3], 1, shape[3] * shape[1], shape[1]))
            for one in (image, weight) for shape in (one[0],)]  # fmt: skip
    assert "layout-copy" not in ids(guess(make("aten::convolution", *last, out=last[:1], options=options)))
