"""Each expectation was counted in the raw JSON, or follows from the loop that was recorded."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tracehunch.checks import for_loop_indexing
from tracehunch.checks._loops import repeats
from tracehunch.verdict import CannotTell, Finding

H200 = Path(__file__).parents[1] / "data" / "h200"
PATTERNS = "../h200_patterns/"
TRACES = sorted(str(path.relative_to(H200)).removesuffix(".json.gz") for path in H200.rglob("*.json.gz"))


def findings(facts):
    return [found for found in for_loop_indexing.check(facts) if isinstance(found, Finding)]


def idle_and_busy_us(document, scope):
    """Time of the calls of a scope in which the GPU ran nothing, and in which it did, over all calls."""
    events = document["traceEvents"]
    calls = [
        (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e.get("cat") == "user_annotation" and e["name"] == scope
    ]
    work = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    busy = sum(
        max(0.0, min(end, stop) - max(start, begin)) for start, end in work for begin, stop in calls
    )  # one stream: they do not overlap
    return sum(stop - begin for begin, stop in calls) - busy, busy


def test_a_loop_over_rows_is_a_warning(facts_of, raw):
    (found,) = findings(facts_of("faults/for_loop_index"))
    assert (found.id, found.scope, found.severity) == ("for-loop-indexing", "step", "warning")
    assert (found.confidence, found.subject) == ("high", "aten::select, aten::mul, aten::copy_")
    assert "a Python loop of 64 passes" in found.summary
    assert found.summary.endswith("at capture.py(265): loopidx")
    events = raw("faults/for_loop_index")["traceEvents"]
    names = Counter(e["name"] for e in events if e.get("cat") == "cpu_op")
    assert found.per_call == (names["aten::mul"] + names["aten::copy_"]) / 3 == 128
    cited = Counter(events[position]["cat"] for position in found.evidence)
    assert cited == {"kernel": 3 * 64, "gpu_memcpy": 3 * 64, "cpu_op": 4}


def test_at_stake_is_what_all_passes_but_one_cost(facts_of, raw):
    """The step does nothing else: its idle and its GPU time, less one of 64 parts and the way to the loop."""
    (found,) = findings(facts_of("faults/for_loop_index"))
    idle, busy = (one / 3 for one in idle_and_busy_us(raw("faults/for_loop_index"), "step"))
    assert 0.9 * (idle + busy) < found.time_at_stake_us < 63 / 64 * (idle + busy)
    assert len(set(found.idle)) == len(found.idle) > 300


@pytest.mark.parametrize(
    ("name", "passes", "per_call", "subject"),
    [
        ("loop_growing_fill", 64, 64, "aten::lift_fresh, aten::select, aten::slice, aten::fill_"),
        ("loop_over_unbind", 96, 96, "aten::add_"),
    ],
)
def test_loops_of_other_forms(facts_of, name, passes, per_call, subject):
    (found,) = findings(facts_of(f"{PATTERNS}{name}"))
    assert (found.severity, found.per_call, found.subject) == ("warning", per_call, subject)
    assert f"a Python loop of {passes} passes" in found.summary


def test_without_shapes_the_confidence_is_medium(raw, facts_from):
    """Constructed: the recorded loop as record_shapes=False has it."""
    document = raw("faults/for_loop_index")
    for event in document["traceEvents"]:
        for key in ("Input Dims", "Input type", "Input Strides", "Concrete Inputs"):
            event.get("args", {}).pop(key, None)
    (found,) = findings(facts_from(document))
    assert (found.severity, found.confidence) == ("warning", "medium")


def test_rows_of_changing_size_are_no_loop_over_rows(raw, facts_from):
    """Constructed: what the loop indexes has another size in each pass."""
    document = raw("faults/for_loop_index")
    for number, event in enumerate(document["traceEvents"]):
        if event.get("name") == "aten::select":
            event["args"]["Input Dims"] = [[512, number], [], []]
    assert findings(facts_from(document)) == []


@pytest.mark.parametrize(
    "name",
    [
        "loop_8_rows",  # too few
        "loop_16_large_rows",  # 170 us a row: nothing to gain
        "loop_recurrent",  # each of 128 passes multiplies a matrix
        "loop_of_item",  # reads to the host: sync-stall
        "adam_loop_large",
        "custom_optimizer_loop",
        "autocast_training",
    ],
)
def test_other_loops_are_none(facts_of, name):
    assert findings(facts_of(f"{PATTERNS}{name}")) == []


def test_warnings_over_all_traces(facts_of):
    found = {name: findings(facts_of(name)) for name in TRACES}
    assert [name for name in TRACES if found[name]] == ["faults/for_loop_index"]


def test_a_loop_whose_ops_were_not_recorded_cannot_be_told(facts_of):
    (found,) = for_loop_indexing.check(facts_of(f"{PATTERNS}loop_gpu_activities_only"))
    assert isinstance(found, CannotTell)
    assert (found.key, found.scope) == ("for-loop-indexing", "whole")
    assert found.record_with == "ProfilerActivity.CPU"
    assert found.reason.startswith("128 tiny GPU activities")


def test_the_shortest_period_is_taken_and_blocks_are_not_crossed():
    names = np.array([7, *[1, 2] * 20, 9, *[3] * 15, *[4] * 17])
    one_block = np.zeros(names.size, dtype=np.int64)
    assert repeats(names, one_block) == [(1, 41, 2), (57, 74, 1)]
    halves = (np.arange(names.size) >= 20).astype(np.int64)
    assert repeats(names, halves) == [(57, 74, 1)]


def test_products_inside_an_op_make_a_loop_over_time_steps(raw, facts_from):
    """Constructed: each pass of a loop over rows calls an op that multiplies, as ``aten::gru_cell`` does."""
    document = raw("faults/for_loop_index")
    assert findings(facts_from(document))
    launching = [e for e in document["traceEvents"] if e.get("name") in {"aten::mul", "aten::copy_"}]
    assert len(launching) >= 64
    for event in launching:
        cell = {**event, "name": "aten::gru_cell", "ts": event["ts"] - 0.2, "dur": event["dur"] + 0.4}
        document["traceEvents"].append(cell)
        event["name"] = "aten::addmm"
    assert findings(facts_from(document)) == []
