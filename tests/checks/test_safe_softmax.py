"""It cannot be that the check cannot tell: ``aten::_safe_softmax`` is in the trace where it ran."""

import math

import pytest

from tracehunch.checks import safe_softmax


def test_the_guards_cost_more_than_the_softmax(facts_of, raw):
    (found,) = safe_softmax.check(facts_of("seeds/sdpa_math"))
    cited = [raw("seeds/sdpa_math")["traceEvents"][position] for position in found.evidence]
    assert len(cited) == 12
    assert not any("softmax_warp" in event["name"] for event in cited)
    assert math.isclose(found.time_at_stake_us, sum(event["dur"] for event in cited) / 3, rel_tol=1e-6)
    assert "4 guard kernels" in found.summary
    assert "2.37x the softmax itself" in found.summary


@pytest.mark.parametrize("name", ["seeds/naive", "seeds/sdpa_cudnn", "models/llama_eager_prefill"])
def test_plain_softmax_has_no_guards(facts_of, name):
    assert list(safe_softmax.check(facts_of(name))) == []
