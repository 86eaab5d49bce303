"""SDPA calls of a scope: how many there are, and in what two scopes' calls differ."""

from dataclasses import replace

import pytest

from tracehunch.compare.sdpa_calls import differences_of, tensor_text
from tracehunch.predict.traced import SDPA, recorded_call

PREFILL, PADDED = "h200/models/llama_sdpa_prefill", "h200/models/llama_sdpa_padded"


def first_call(look):
    trace = look.facts.tree.trace
    row = next(row for row in look.facts.tree.ops.tolist() if trace.name_of(row) == SDPA)
    return recorded_call(SDPA, trace.args_of(row))


def said(before, after):
    return list(differences_of(before, after))


def test_the_padded_call_differs_in_flags_mask_and_heads(seen):
    assert said(first_call(seen(PREFILL)), first_call(seen(PADDED))) == [
        "is_causal is gone (True -> False)",
        "enable_gqa is gone (True -> False)",
        "a mask is there (attn_mask: 4 x 1 x 1024 x 1024 bool)",
        "16 key and value heads, before 4",
    ]
    assert said(first_call(seen(PADDED)), first_call(seen(PREFILL)))[2].startswith("the mask is gone")


def test_sizes_that_changed_alike_are_told_together(seen):
    d256, d512 = (first_call(seen(f"h200/ops/{name}_auto")) for name in ("d256", "d512"))
    assert said(d256, d512) == ["query, key and value are 2 x 4 x 512 x 512, they were 4 x 8 x 1024 x 256"]


def test_a_type_a_mask_and_strides(seen):
    call = first_call(seen("h200/ops/floatmask_auto"))
    wider = replace(call, call=replace(call.call, q=replace(call.call.q, dtype="float32")))
    assert said(call, wider) == ["query, key and value are fp32, they were bf16"]
    mask = call.call.mask
    assert tensor_text(mask) == "1024 x 1024 bf16"
    other = replace(call, call=replace(call.call, mask=replace(mask, dtype="bool")))
    assert said(call, other) == ["the mask is 1024 x 1024 bool, it was 1024 x 1024 bf16"]
    strided = replace(call, call=replace(call.call, q=replace(call.call.q, stride=(1, 2, 3, 4))))
    assert said(call, strided)[0].startswith("the query's strides are (1, 2, 3, 4), they were")


def test_what_is_left_open_is_no_difference(seen):
    before, after = first_call(seen(PREFILL)), first_call(seen(PADDED))
    unsure = replace(before, open=("is_causal", "enable_gqa"))
    assert not [text for text in said(unsure, after) if "is_causal" in text or "gqa" in text]


@pytest.mark.parametrize("name", ["llama_sdpa_prefill", "llama_sdpa_compiled"])
def test_calls_by_compiled_code_count_too(changed, name):
    found = changed(PREFILL, f"h200/models/{name}")
    scope = next(one for one in found.scopes if one.pair.name == "model_fwd")
    ids = {cause.id for change in scope.changes for cause in change.causes}
    assert "attention-step" not in ids  # six calls on both sides: none stands for what went
