"""It cannot be that the check cannot tell: the ops that build the mask are in the trace under their names."""

import math

import pytest

from tracehunch.checks import mask_rebuilt


def test_the_causal_fallback_builds_its_mask_with_five_kernels(facts_of, raw):
    (found,) = mask_rebuilt.check(facts_of("seeds/sdpa_math"))
    cited = [raw("seeds/sdpa_math")["traceEvents"][position] for position in found.evidence]
    assert len(cited) == 15
    assert sum("triu_tril" in event["name"] for event in cited) == 3
    assert "5 kernels (ones, tril, scalar_tensor and where)" in found.summary
    assert math.isclose(found.time_at_stake_us, sum(event["dur"] for event in cited) / 3, rel_tol=1e-6)
    assert found.severity == "note"  # 11 of 2617 us


@pytest.mark.parametrize(
    "name", ["seeds/sdpa_flash", "seeds/naive", "ops/boolmask_auto", "models/llama_eager_prefill"]
)
def test_masks_that_were_passed_or_not_needed_are_not_rebuilt(facts_of, name):
    assert list(mask_rebuilt.check(facts_of(name))) == []


def test_a_mask_that_is_only_converted_is_not_rebuilt(raw, facts_from):
    """Constructed: the fallback without ``tril``, as where a Boolean mask was passed."""
    document = raw("seeds/sdpa_math")
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("name") != "aten::tril"]
    assert list(mask_rebuilt.check(facts_from(document))) == []
