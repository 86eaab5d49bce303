"""It cannot be that the check cannot tell: an op that ran is in the trace under its name."""

import math

import pytest

from tracehunch.checks import sdpa_math_fallback


def the_finding(facts):
    (found,) = sdpa_math_fallback.check(facts)
    return found


@pytest.mark.parametrize("name", ["seeds/sdpa_math", "seeds/shapes_sdpa_math"])
def test_math_is_named_with_kernels_time_and_ratio(facts_of, name):
    found = the_finding(facts_of(name))
    assert (found.scope, found.severity) == ("sdpa_fwd", "warning")
    assert "20 kernels and 2.6" in found.summary
    # measured on the same machine: flash 94.7 us, cuDNN 57.8 us against 2617 us, 27.6 and 45.3 times
    ratios = found.summary.split("about ")[1].split(" a fused")[0].split(" to ")
    low, high = (float(ratio.rstrip("x")) for ratio in ratios)
    assert low < 27.6
    assert high > 45.3
    assert 2617 - 600 < found.time_at_stake_us < 2617 - 57


def test_its_evidence_is_every_activity_of_the_calls(facts_of, raw):
    found = the_finding(facts_of("seeds/sdpa_math"))
    cited = [raw("seeds/sdpa_math")["traceEvents"][position] for position in found.evidence]
    assert sum(e["cat"] == "kernel" for e in cited) == 60
    assert [e["name"] for e in cited if e["cat"] == "cpu_op"] == [
        "aten::_scaled_dot_product_attention_math"
    ] * 3


def test_shapes_narrow_the_estimate_and_raise_the_confidence(facts_of):
    assert the_finding(facts_of("seeds/sdpa_math")).confidence == "low"
    assert the_finding(facts_of("seeds/shapes_sdpa_math")).confidence == "medium"


def test_without_shapes_it_does_not_guess_the_reason(facts_of):
    assert "record_shapes=True" in the_finding(facts_of("seeds/sdpa_math")).cause


def test_inputs_that_any_fused_kernel_takes_mean_pinned(facts_of):
    assert "most likely pinned" in the_finding(facts_of("seeds/shapes_sdpa_math")).cause
    assert "most likely pinned" in the_finding(facts_of("ops/gqa_math")).cause


@pytest.mark.parametrize(
    "name", ["seeds/sdpa_flash", "seeds/naive", "ops/d512_auto", "models/llama_sdpa_train"]
)
def test_fused_or_handwritten_attention_is_not_the_fallback(facts_of, name):
    assert list(sdpa_math_fallback.check(facts_of(name))) == []


def change_inputs(document, change):
    for event in document["traceEvents"]:
        if event.get("name") == "aten::_scaled_dot_product_attention_math":
            change(event["args"])
    return document


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: a.update({"Input type": ["double"] * 3 + [""] * 6}), "dtype float64"),
        (
            lambda a: a.update({"Input Dims": [[128, 1024, 64]] * 3 + [[]] * 6}),
            "flash, efficient and cudnn: q, k, v have 3, 3, 3 dimensions",
        ),
        (lambda a: a.update({"Input Strides": [[1048576, 65536, 1, 1024]] * 3 + [[]] * 6}), "not contiguous"),
        (
            lambda a: a.update({"Input Dims": [[8, 16, 1024, 64]] + [[8, 1, 1024, 64]] * 2 + [[]] * 6}),
            "heads q 16, k 1, v 1 do not fit (enable_gqa=False)",
        ),
    ],
)
def test_it_says_what_in_the_recorded_inputs_keeps_fused_kernels_away(raw, facts_from, change, words):
    """Constructed: a recorded trace with other inputs written into its math ops."""
    found = the_finding(facts_from(change_inputs(raw("seeds/shapes_sdpa_math"), change)))
    assert words in found.cause
    assert words.partition(": ")[2] in found.fix  # which stands alone in annotations


def test_an_unknown_gpu_still_has_its_matrix_products_to_compare_with(raw, facts_from):
    document = raw("seeds/sdpa_math")
    document["deviceProperties"][0]["name"] = "Some GPU of tomorrow"
    found = the_finding(facts_from(document))
    # 2617 us against 957 us of matrix products
    assert "at least 2.7" in found.summary
    assert math.isclose(found.time_at_stake_us, 2617 - 957, rel_tol=0.01)
