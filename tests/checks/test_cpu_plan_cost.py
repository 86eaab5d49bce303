"""Own host times were summed from the raw JSON: duration less that of the rows directly inside.

It cannot be that the check cannot tell: host time that nothing explains is there or not; without recorded
shapes the finding is less sure and says so.
"""

import pytest

from tracehunch.checks import cpu_plan_cost


def results(facts):
    return list(cpu_plan_cost.check(facts))


@pytest.mark.parametrize(
    "name", ["seeds/sdpa_cudnn", "seeds/sdpa_auto", "models/llama_sdpa_train", "situations/unet_nchw"]
)
def test_it_is_silent_where_plans_are_there(facts_of, name):
    assert results(facts_of(name)) == []


def test_every_new_length_builds_a_plan(facts_of, raw):
    (found,) = results(facts_of("situations/gpt_recompiles"))
    assert (found.severity, found.confidence, found.scope) == ("warning", "high", "step")
    cited = [raw("situations/gpt_recompiles")["traceEvents"][position] for position in found.evidence]
    # of six calls, two of each of three lengths, the first of each: 60.0, 44.9 and 43.5 ms of their own
    assert [event["args"]["Input Dims"][0][2] for event in cited] == [112, 120, 128]
    assert found.time_at_stake_us == pytest.approx((60037.5 + 44926.6 + 43539.9) / 3 - 103.2, rel=0.002)
    assert "3 of 6 calls" in found.summary


def test_one_new_length_among_known_ones(facts_of):
    (found,) = results(facts_of("situations/gpt_varying_lengths_cudnn"))
    assert (found.severity, found.confidence) == ("warning", "medium")
    assert len(found.evidence) == 1
    assert "70.4" in found.summary
    assert "The first calls of 5 other shapes were quick" in found.cause


def forget_shapes(document):
    document["record_shapes"] = 0
    for event in document["traceEvents"]:
        event.get("args", {}).pop("Input Dims", None)
    return document


def test_without_shapes_several_slow_calls_are_enough(raw, facts_from):
    (found,) = results(facts_from(forget_shapes(raw("situations/gpt_recompiles"))))
    assert len(found.evidence) == 3
    assert found.confidence == "medium"
    assert "record_shapes=True" in found.cause


def test_without_shapes_a_single_slow_call_has_to_be_the_first_of_its_grid(raw, facts_from):
    (found,) = results(facts_from(forget_shapes(raw("situations/gpt_varying_lengths_cudnn"))))
    assert (len(found.evidence), found.confidence) == (1, "low")
    assert results(facts_from(stretch(raw("seeds/sdpa_cudnn"), 1))) == []


def stretch(document, which, by_us=30_000.0):
    """Delay the trace by ``by_us`` inside one of the cuDNN calls, after all that is directly inside it."""
    calls = [e for e in document["traceEvents"] if e.get("name") == "aten::_cudnn_attention_forward"]
    end = calls[which]["ts"] + calls[which]["dur"]
    for event in document["traceEvents"]:
        if event.get("ph") != "X" or not isinstance(event.get("ts"), int | float):
            continue
        if event["ts"] >= end - 1:
            event["ts"] += by_us
        elif event["ts"] <= calls[which]["ts"] and event["ts"] + event["dur"] >= end:
            event["dur"] += by_us
    return document


def test_a_single_first_call_is_a_note(raw, facts_from):
    (found,) = results(facts_from(stretch(raw("seeds/shapes_sdpa_cudnn"), 0)))
    assert found.severity == "note"


def test_a_slow_call_of_a_known_shape_is_something_else(raw, facts_from):
    assert results(facts_from(stretch(raw("seeds/shapes_sdpa_cudnn"), 1))) == []


def test_time_that_something_inside_explains_is_not_a_plan(raw, facts_from):
    document = stretch(raw("seeds/shapes_sdpa_cudnn"), 0)
    call = next(e for e in document["traceEvents"] if e.get("name") == "aten::_cudnn_attention_forward")
    inside = {
        "cat": "cuda_runtime",
        "name": "cudaMalloc",
        "ts": call["ts"] + call["dur"] - 29_500,
        "dur": 29_000,
    }
    document["traceEvents"].append({**call, **inside, "args": {"correlation": 999_999_999}})
    assert results(facts_from(document)) == []
