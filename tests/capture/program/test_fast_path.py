"""Attention and encoder layers in inference: what they call is what a run on the CPU calls, or SDPA."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tracehunch.capture.program import record_call
from tracehunch.predict.environment import environment
from tracehunch.predict.program import SDPA, guess_program

torch = pytest.importorskip("torch")

WIDTH, HEADS, BATCH, LENGTH = 32, 4, 3, 8
CALLED = tuple(
    f"aten::{name}"
    for name in (
        "mm", "bmm", "addmm", "_addmm_activation", "_softmax", "_masked_softmax", "sum", "div_", "clone",
        "add", "_transform_bias_rescale_qkv", "add_", "native_layer_norm", "masked_fill_", "cat", "argmin",
        "cumsum",
    )
)  # fmt: skip

x = torch.randn(BATCH, LENGTH, WIDTH)
padding = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
padding[:, :2] = True  # on the left: an encoder packs nothing
triangle = torch.ones(LENGTH, LENGTH, dtype=torch.bool).triu(1)
causal = torch.nn.Transformer.generate_square_subsequent_mask(LENGTH)

attention = torch.nn.MultiheadAttention(WIDTH, HEADS, batch_first=True).eval()
odd = torch.nn.MultiheadAttention(20, HEADS, batch_first=True).eval()
layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 64, batch_first=True).eval()
first = torch.nn.TransformerEncoderLayer(
    WIDTH, HEADS, 64, activation="gelu", norm_first=True, batch_first=True
).eval()
encoder = torch.nn.TransformerEncoder(layer, 2).eval()

CASES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "weights": (attention, (x, x, x), {}),
    "weights of each head": (attention, (x, x, x), {"average_attn_weights": False}),
    "padding": (attention, (x, x, x), {"key_padding_mask": padding, "need_weights": False}),
    "a mask and padding": (attention, (x, x, x), {"attn_mask": triangle, "key_padding_mask": padding}),
    "heads of five": (odd, (x[..., :20].clone(),) * 3, {"need_weights": False}),
    "apart": (attention, (torch.randn(LENGTH, BATCH, WIDTH).transpose(0, 1),) * 3, {}),
    "a layer": (layer, (x, triangle), {}),
    "a layer that begins with a norm": (first, (x,), {"src_key_padding_mask": padding}),
    "an encoder": (encoder, (x,), {"src_key_padding_mask": padding}),
    "an encoder with both": (encoder, (x, causal), {"src_key_padding_mask": padding}),
}


def real(run: Any, args: Any, kwargs: Any) -> list[str]:
    with torch.no_grad(), torch.profiler.profile() as profiler:
        run(*args, **kwargs)
    return [one.name for one in profiler.events() if one.name in CALLED]


def recorded(run: Any, args: Any, kwargs: Any) -> Any:
    program = record_call(torch.no_grad()(run), args, kwargs)
    assert not program.obstacles
    return program


@pytest.mark.parametrize("name", list(CASES))
def test_what_is_called_with_masks_and_for_weights(name):
    run, args, kwargs = CASES[name]
    calls = [one.op for one in recorded(run, args, kwargs).calls if one.op in CALLED]
    assert Counter(calls) == Counter(real(run, args, kwargs))
    assert calls == real(run, args, kwargs)


def test_sdpa_is_asked_where_it_has_a_kernel():
    program = recorded(attention, (x, x, x), {"need_weights": False})
    ops = [one.op for one in program.calls if one.op in {*CALLED, SDPA}]
    assert ops == ["aten::addmm", SDPA, "aten::addmm"]

    def math() -> Any:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return attention(x, x, x, need_weights=False)

    assert SDPA not in {one.op for one in recorded(math, (), {}).calls}


def test_no_weights_are_none():
    seen: list[Any] = []
    recorded(lambda: seen.append(attention(x, x, x, need_weights=False)[1]), (), {})
    recorded(lambda: seen.append(attention(x, x, x)[1].shape), (), {})
    assert seen == [None, (BATCH, LENGTH, LENGTH)]


@pytest.mark.parametrize("name", list(CASES))
def test_inference_mode(name):
    run, args, kwargs = CASES[name]
    run = torch.inference_mode()(run)
    program = record_call(run, args, kwargs)
    assert [one.op for one in program.calls if one.op in CALLED] == real(run, args, kwargs)


def test_views_of_weights_in_inference_mode():
    model = torch.nn.Linear(WIDTH, WIDTH)

    def run() -> Any:
        weight = model.weight.expand(2, -1, -1).flatten(0, 1)
        return weight.t(), model.weight.view(-1).unsqueeze(0).movedim(0, 1)

    assert not record_call(torch.inference_mode()(run)).obstacles


def test_linear_layers_fold_what_lies_apart_in_inference_mode_too():
    model, rows = torch.nn.Linear(WIDTH, 8), CASES["apart"][1][:1]
    for mode in (torch.no_grad, torch.inference_mode):
        run = mode()(model)
        assert [one.op for one in record_call(run, rows).calls if one.op in CALLED] == real(run, rows, {})


def test_all_of_it_is_known():
    for run, args, kwargs in CASES.values():
        found = guess_program(recorded(run, args, kwargs), environment("h200", "2.11"))
        assert not found.cannot_tell
        assert found.totals.amounts.gpu_time_us


def test_what_is_packed_stops():
    padded = torch.zeros(BATCH, LENGTH, dtype=torch.bool)
    padded[:, -2:] = True
    program = record_call(torch.no_grad()(encoder), (x,), {"src_key_padding_mask": padded})
    (told,) = program.obstacles
    assert told.stops
    assert "nested" in told.reason
    assert "aten::argmin" in {one.op for one in program.calls}
