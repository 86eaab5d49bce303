"""Durations of calls and ops were taken from the raw JSON."""

import statistics

import pytest

from tracehunch.checks import cold_start
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.tree import link
from tracehunch.verdict import CannotTell, Finding


def results(facts):
    return list(cold_start.check(facts))


def walls_us(document, name):
    found = sorted(
        (e["ts"], e["dur"])
        for e in document["traceEvents"]
        if e.get("name") == name and e.get("cat") == "user_annotation"
    )
    return [duration for _, duration in found]


def test_the_first_calls_of_a_process(facts_of, raw):
    (found,) = results(facts_of("../h200_waits/cold_mixed"))
    assert (found.scope, found.severity, found.confidence) == ("forward", "note", "high")
    first, *others = walls_us(raw("../h200_waits/cold_mixed"), "forward")
    assert first > 1_000_000
    assert f"the first of 5 calls took {first / 1e6:.3f} s" in found.summary
    assert f"the others {statistics.median(others):.1f} us (median)" in found.summary
    for op in ("aten::_cudnn_attention_forward", "aten::cudnn_convolution", "aten::addmm"):
        assert op in found.summary
    for event in ("9 x cudaMalloc", "15 x Lazy Function Loading", "2 x Runtime Triggered Module Loading"):
        assert event in found.cause
    assert "Read times without this call" in found.cause
    assert 0 < found.time_at_stake_us < first / 5


def test_a_later_call_that_uses_something_new(facts_of):
    (found,) = results(facts_of("../h200_waits/cold_late"))
    assert (found.scope, found.subject) == ("step", "aten::_linalg_svd")
    assert found.summary.startswith("call 3 of 5 took 103.2 ms")


def test_a_plan_built_in_the_first_call(facts_of):
    (found,) = results(facts_of("situations/gpt_varying_lengths_cudnn"))
    assert found.subject == "aten::_cudnn_attention_forward"
    assert "the first of 6 calls took 77.29 ms" in found.summary


def test_no_other_recorded_trace_has_a_finding(facts_of, recorded):
    assert {name for name in recorded if results(facts_of(name))} == {"situations/gpt_varying_lengths_cudnn"}


def test_a_first_call_that_is_slow_throughout_is_noise(facts_of):
    # 2.2 ms, the others 0.8 to 1.0 ms, no op longer than 0.4 ms
    assert results(facts_of("../h200_waits/bench_sync_many")) == []


def stretch(document, op, which, by_us):
    """Make one call of an op longer, and what is around it; delay all that comes after."""
    calls = sorted((e for e in document["traceEvents"] if e.get("name") == op), key=lambda e: e["ts"])
    end = calls[which]["ts"] + calls[which]["dur"]
    for event in document["traceEvents"]:
        if event.get("ph") != "X" or not isinstance(event.get("ts"), int | float):
            continue
        if event["ts"] >= end:
            event["ts"] += by_us
        elif event["ts"] <= calls[which]["ts"] and event["ts"] + event["dur"] >= end:
            event["dur"] += by_us
    return document


def test_an_op_interrupted_once_in_a_later_call_is_noise(raw, facts_from):
    document = stretch(raw("seeds/shapes_naive"), "aten::softmax", 1, 20_000)
    assert results(facts_from(document)) == []


def test_a_little_slower_is_no_cold_start(raw, facts_from):
    document = stretch(raw("seeds/shapes_naive"), "aten::softmax", 0, 300)
    assert results(facts_from(document)) == []


def test_a_wait_is_no_cold_start(raw, facts_from):
    document = stretch(raw("faults/sync_item"), "cudaStreamSynchronize", 0, 20_000)
    assert results(facts_from(document)) == []


def without_steps_after(document, n_steps):
    steps = sorted(
        (e for e in document["traceEvents"] if "ProfilerStep" in e.get("name", "")), key=lambda e: e["ts"]
    )
    end = steps[n_steps]["ts"]
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("ph") != "X" or e["ts"] < end]
    return document


def test_two_calls_do_not_tell_which_is_typical(raw, facts_from):
    (untold,) = results(facts_from(without_steps_after(raw("../h200_waits/cold_mixed"), 2)))
    assert isinstance(untold, CannotTell)
    assert not isinstance(untold, Finding)
    assert (untold.key, untold.scope) == ("cold-start", "forward")
    assert "schedule" in untold.record_with


def test_calls_that_do_different_things_are_not_compared(raw, facts_from):
    document = raw("../h200_waits/cold_mixed")
    steps = sorted(
        (e for e in document["traceEvents"] if e.get("name") == "forward" and e["cat"] == "user_annotation"),
        key=lambda e: e["ts"],
    )
    emptied = [(e["ts"], e["ts"] + e["dur"]) for e in steps[1:]]
    ours = ("cpu_op", "cuda_runtime", "cuda_driver")
    document["traceEvents"] = [
        e
        for e in document["traceEvents"]
        if e.get("cat") not in (*ours, "overhead")
        or not (e["cat"] == "overhead" or any(a <= e["ts"] < b for a, b in emptied))
    ]
    document["traceEvents"] = [e for e in document["traceEvents"] if "lloc" not in e.get("name", "")]
    assert results(facts_from(document)) == []


@pytest.mark.parametrize("name", ["mha", "encoder_eval", "train_mlp", "naive"])
def test_noise_on_a_cpu_is_no_cold_start(cpu, name):
    assert results(measure(link(read(cpu / f"{name}.json.gz")))) == []
