"""The traces of h200_calls were recorded with torch 2.11 and cuDNN 9.19; most others without hazards."""

import gzip
import json
import re
from pathlib import Path

import pytest

from tracehunch.checks import sdpa_known_hazard
from tracehunch.facts import measure
from tracehunch.trace import read, read_bytes
from tracehunch.tree import link
from tracehunch.verdict import CannotTell, Finding

DATA = Path(__file__).parents[1] / "data"
TRACES = sorted(path for name in ("h200", "h200_plans", "cpu") for path in (DATA / name).rglob("*.json.gz"))
H200_211 = {"torch_version": "2.11.0+cu130", "cudnn_version": "91900"}


def results(facts):
    return list(sdpa_known_hazard.check(facts))


def findings(facts):
    return [one for one in results(facts) if isinstance(one, Finding)]


@pytest.fixture(scope="module")
def calls():
    """A trace of 48 kinds of call, with its version: (scope, hazard) -> finding."""
    document = json.loads(gzip.decompress((DATA / "h200_calls/sdpa_calls.json.gz").read_bytes()))
    facts = measure(link(read_bytes(json.dumps(document | H200_211).encode(), "calls")))
    return document, {(one.scope, one.subject.split()[-1]): one for one in findings(facts)}


def gpu_us(document, annotation):
    """GPU time of what was launched inside SDPA in an annotation: by time and correlation in the raw JSON."""
    events = [e for e in document["traceEvents"] if e.get("ph") == "X"]
    (scope,) = [e for e in events if e["name"] == annotation and e["cat"] == "user_annotation"]
    (call,) = [
        e
        for e in events
        if e["name"] == "aten::scaled_dot_product_attention"
        and scope["ts"] <= e["ts"] < scope["ts"] + scope["dur"]
    ]
    launched = {
        e["args"]["correlation"]
        for e in events
        if e["cat"] in ("cuda_runtime", "cuda_driver") and call["ts"] <= e["ts"] < call["ts"] + call["dur"]
    }
    return sum(
        e["dur"]
        for e in events
        if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset") and e["args"]["correlation"] in launched
    )


def test_one_query_that_is_causal_is_an_error(calls):
    document, found = calls
    one = found["decode_causal", "causal-one-query"]
    assert (one.severity, one.confidence, one.time_at_stake_us, one.per_call) == ("error", "high", 0, 1.0)
    assert "the query sees the first key alone" in one.summary
    cited = [document["traceEvents"][at] for at in one.evidence]
    asked = [event for event in cited if event["cat"] == "cpu_op"]
    assert [event["args"]["Input Dims"][0] for event in asked] == [[2, 8, 1, 64]]


def test_a_known_nan_is_an_error_where_the_version_is_known_to_have_it(calls, facts_from):
    document, found = calls
    one = found["train_mask_192", "cudnn-backward-nan"]
    assert (one.severity, one.confidence) == ("error", "medium")
    assert "https://github.com/pytorch/pytorch/issues/196678" in one.cause
    unknown = {(one.scope, one.subject.split()[-1]): one for one in findings(facts_from(document))}
    one = unknown["train_mask_192", "cudnn-backward-nan"]
    assert (one.severity, one.confidence) == ("note", "low")
    assert "in torch 2.11 to 2.13, of 2.9 to 2.14 that it may be: the trace does not say which" in one.cause
    newer = {one.subject.split()[-1] for one in findings(facts_from(document | {"torch_version": "2.14.0"}))}
    assert "cudnn-backward-nan" not in newer


def test_fewer_queries_than_keys_may_be_meant(calls):
    one = calls[1]["chunk_causal", "causal-lengths"]
    assert (one.severity, one.confidence, one.time_at_stake_us) == ("warning", "medium", 0)
    assert "static cache" in one.fix


def test_a_causal_mask_that_the_program_makes_costs_what_is_above_the_causal_kernel(calls):
    document, found = calls
    one = found["mask_made_each_call", "explicit-causal-mask"]
    assert (one.severity, one.confidence) == ("note", "medium")
    measured, causal = gpu_us(document, "mask_made_each_call"), gpu_us(document, "causal")
    # the same call with is_causal=True was measured, too: no more may be claimed than the difference
    assert 0.3 * (measured - causal) < one.time_at_stake_us <= measured - causal


def test_what_the_shapes_alone_suggest_is_a_note_of_low_confidence(facts_of):
    (one,) = findings(facts_of("ops/boolmask_auto"))
    assert (one.severity, one.confidence, one.scope) == ("note", "low", "sdpa_fwd")
    assert one.subject == "aten::scaled_dot_product_attention square-mask"
    assert "(1024, 1024)" in one.summary
    # 81.8 us with the mask; the causal call of the same shape took 33.7 us (ops/noncontig_auto)
    assert 0.4 * (81.8 - 33.7) < one.time_at_stake_us < 81.8 - 33.7


def test_the_rest_are_notes(calls):
    others = {
        key: one.severity
        for key, one in calls[1].items()
        if key[1] not in ("causal-one-query", "causal-lengths", "cudnn-backward-nan")
    }
    assert set(others.values()) == {"note"}
    assert {hazard for _, hazard in others} == {
        "explicit-causal-mask", "square-mask", "mask-keeps-flash-away", "implicit-mqa", "gqa-math",
        "expanded-kv-decode",
    }  # fmt: skip


def test_math_is_left_to_the_fallbacks_finding(calls):
    assert calls[1]["mqa_implicit", "implicit-mqa"].time_at_stake_us == 0
    assert calls[1]["gqa_fp32", "gqa-math"].time_at_stake_us == 0


NOTES = {"h200/ops/boolmask_auto", "h200/ops/floatmask_auto", "h200/ops/d72_fp32mask_auto"}


def test_no_recorded_trace_gets_more_than_a_note():
    found = {}
    for path in TRACES:
        name = str(path.relative_to(DATA)).removesuffix(".json.gz")
        if seen := findings(measure(link(read(path)))):
            found[name] = {one.severity for one in seen}
    assert found == {name: {"note"} for name in NOTES}


def test_without_shapes_it_cannot_tell(facts_of):
    (one,) = results(facts_of("seeds/sdpa_auto"))
    assert isinstance(one, CannotTell)
    assert (one.key, one.scope, one.record_with) == ("sdpa-known-hazard", "whole", "record_shapes=True")
    assert one.reason.startswith("3 SDPA calls cannot be held against what is known")
    assert results(facts_of("seeds/naive")) == []


def test_a_version_without_rules_cannot_be_told(raw, facts_from):
    (one,) = results(facts_from(raw("ops/gqa_auto") | {"torch_version": "2.4.0"}))
    assert isinstance(one, CannotTell)
    assert re.search(r"2\.4\.0", one.reason)


def test_nested_tensors_cannot_be_told_whatever_is_recorded(cpu):
    found = results(measure(link(read(cpu / "sdpa_odd.json.gz"))))
    (nested,) = [one for one in found if isinstance(one, CannotTell)]
    assert "2 SDPA calls" in nested.reason
    assert "nested tensors" in nested.reason
    assert nested.record_with == ""


def quick_plans(document):
    """Make calls that built a plan as short as the others: as if the plans had been there."""
    for event in document["traceEvents"]:
        if "attention" in event.get("name", "") and event.get("dur", 0) > 1000:
            event["dur"] = 100
    return document


def test_lengths_that_vary_under_cudnn_are_a_note_where_no_plan_was_built(raw, facts_from, facts_of):
    assert findings(facts_of("situations/gpt_varying_lengths_cudnn")) == []  # cpu-plan-cost tells
    (one,) = findings(facts_from(quick_plans(raw("situations/gpt_varying_lengths_cudnn"))))
    assert (one.severity, one.scope, one.time_at_stake_us) == ("note", "step", 0)
    assert "6 lengths (L=512 to 1152)" in one.summary
    assert len(one.evidence) == 36
    assert one.per_call == 6


def test_lengths_that_are_the_same_in_every_step_do_not_vary(facts_of):
    assert findings(facts_of("models/llama_sdpa_prefill")) == []


def test_its_page_is_documentation():
    page = sdpa_known_hazard.__doc__
    for heading in ("What it means", "Why it costs", "How to confirm", "How to fix", "When it is fine"):
        assert f"## {heading}" in page
