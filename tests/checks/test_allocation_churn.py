"""Calls that allocate and free were counted in the raw JSON."""

import pytest

from tracehunch.checks import allocation_churn
from tracehunch.verdict import CannotTell, Finding


def results(facts):
    return list(allocation_churn.check(facts))


def spent_us(document, *names):
    return sum(e["dur"] for e in document["traceEvents"] if e.get("name") in names)


def test_emptying_the_cache_in_each_step(facts_of, raw):
    (found,) = results(facts_of("faults/alloc_churn"))
    assert (found.scope, found.severity, found.subject) == ("step", "warning", "cudaFree, cudaMalloc")
    assert found.per_call == 2
    assert found.time_at_stake_us <= spent_us(raw("faults/alloc_churn"), "cudaFree", "cudaMalloc") / 3 + 1e-3
    assert found.time_at_stake_us == pytest.approx(402.2, rel=0.05)
    assert "empty_cache" in found.fix


def test_with_stacks_it_names_the_line(facts_of, raw):
    (found,) = results(facts_of("../h200_waits/alloc_empty_cache"))
    assert found.summary.endswith("at sync_record.py(140): step")
    assert found.per_call == 4
    spent = spent_us(raw("../h200_waits/alloc_empty_cache"), "cudaFree", "cudaMalloc") / 4
    assert 0.7 * spent < found.time_at_stake_us <= spent + 1e-3


def test_memory_that_grows_in_each_step(facts_of):
    (found,) = results(facts_of("../h200_waits/alloc_growing"))
    assert (found.subject, found.per_call) == ("cudaMalloc", 1)
    assert "memory grew in every step" in found.cause


def test_a_first_allocation_is_warm_up(facts_of):
    assert results(facts_of("../h200_waits/alloc_first_only")) == []
    assert results(facts_of("../h200_waits/cold_mixed")) == []


def test_a_warm_up_that_fades_is_no_churn(raw, facts_from):
    document = raw("../h200_waits/alloc_growing")
    calls = [e for e in document["traceEvents"] if e.get("name") == "cudaMalloc"]
    for event in calls[2:]:  # only the first two steps of four allocate
        event["name"] = "cudaStreamIsCapturing"
    assert results(facts_from(document)) == []


def test_pinning_in_each_step(raw, facts_from):
    document = raw("faults/alloc_churn")
    for event in document["traceEvents"]:
        if event.get("name") in ("cudaMalloc", "cudaFree"):
            event["name"] = {"cudaMalloc": "cudaHostAlloc", "cudaFree": "cudaFreeHost"}[event["name"]]
    (found,) = results(facts_from(document))
    assert found.subject == "cudaFreeHost, cudaHostAlloc"
    assert "Pin a buffer once" in found.fix


def test_no_other_recorded_trace_has_a_finding(facts_of, recorded):
    found = {name for name in recorded if any(isinstance(one, Finding) for one in results(facts_of(name)))}
    assert found == {"faults/alloc_churn"}


def keep_one_step(document):
    """The first step alone: its annotation, and what starts in it."""
    step = min((e for e in document["traceEvents"] if e.get("name") == "step"), key=lambda e: e["ts"])
    end = step["ts"] + step["dur"]
    document["traceEvents"] = [
        e
        for e in document["traceEvents"]
        if e.get("ph") != "X" or (e["ts"] < end and "Profiler" not in e["name"])
    ]
    return document


def test_a_single_step_does_not_tell_warm_up_from_churn(raw, facts_from):
    (untold,) = results(facts_from(keep_one_step(raw("faults/alloc_churn"))))
    assert isinstance(untold, CannotTell)
    assert (untold.key, untold.scope) == ("allocation-churn", "step")
    assert "1 cudaFree and 1 cudaMalloc" in untold.reason
