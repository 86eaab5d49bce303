"""Gaps were measured in the raw JSON; only one recorded trace has a long one that is nobody else's."""

import re
from pathlib import Path

import pytest

from tracehunch.checks import gpu_gap

DATA = Path(__file__).parents[1] / "data" / "h200"
TRACES = sorted(
    path.relative_to(DATA).as_posix().removesuffix(".json.gz") for path in DATA.rglob("*.json.gz")
)
ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}


def results(facts):
    return list(gpu_gap.check(facts))


def test_an_op_that_computes_on_the_host_while_the_gpu_waits(facts_of, raw):
    """The first step's batch is cast on the CPU before it is sent."""
    (found,) = results(facts_of("faults/h2d_pageable"))
    assert (found.severity, found.scope, found.subject) == ("note", "step", "aten::copy_")
    (cast,) = [raw("faults/h2d_pageable")["traceEvents"][position] for position in found.evidence]
    assert cast["name"] == "aten::copy_"
    assert found.time_at_stake_us == pytest.approx(cast["dur"] / 3, rel=0.01)


@pytest.mark.parametrize("name", [name for name in TRACES if name != "faults/h2d_pageable"])
def test_no_other_trace_has_one(facts_of, name):
    """Theirs are between all kernels, behind waits, compilation and plans, or at the start."""
    assert results(facts_of(name)) == []


def test_work_that_was_launched_long_before_waits_on_the_gpu(raw, facts_from):
    """Constructed: in a trace whose GPU is behind the host, all from the 50th activity on runs 5 ms later."""
    document = raw("seeds/sdpa_math")
    gpu = sorted((e for e in document["traceEvents"] if e.get("cat") in ON_GPU), key=lambda e: e["ts"])
    for event in gpu[50:]:
        event["ts"] += 5000
    launch = next(
        e
        for e in document["traceEvents"]
        if e.get("cat") in {"cuda_runtime", "cuda_driver"}
        and e["args"]["correlation"] == gpu[50]["args"]["correlation"]
    )
    (found,) = results(facts_from(document))
    assert (found.severity, found.scope, found.confidence) == ("note", "whole", "medium")  # once in 3 steps
    assert [document["traceEvents"][position] for position in found.evidence] == [launch]
    assert found.time_at_stake_us == pytest.approx(5000, abs=10)
    assert found.subject == gpu[50]["name"]
    assert "stream" in found.cause


def test_ops_that_launch_nothing_between_one_launch_and_the_next(raw, facts_from):
    """Constructed: before the last step 100 small ops on the CPU, in a trace whose GPU has enough to do."""
    document = raw("faults/contiguous_copy")
    events = document["traceEvents"]
    step = max((e for e in events if e.get("name", "").startswith("ProfilerStep#") and e["ph"] == "X"
                and e["cat"] == "user_annotation"), key=lambda e: e["ts"])  # fmt: skip
    begin = step["ts"]
    launched = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") in {"cuda_runtime", "cuda_driver"} and e["ts"] >= begin
    }
    for event in events:
        if event.get("cat") in ON_GPU:
            later = event["args"]["correlation"] in launched
        else:
            later = event.get("ph") == "X" and event["ts"] >= begin and event is not step
        event["ts"] = event.get("ts", 0) + 3000 * later
    step["dur"] += 3000
    op = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "aten::arange",
        "pid": step["pid"],
        "tid": step["tid"],
        "args": {},
    }
    events += [op | {"ts": begin + 20 + 28 * n, "dur": 25} for n in range(100)]
    (found,) = results(facts_from(document))
    assert found.scope == "ProfilerStep"
    count = int(re.search(r"the host ran (\d+) ops that launched nothing", found.summary)[1])
    assert 100 <= count <= 110  # and those of the step up to its first launch
    assert found.time_at_stake_us == pytest.approx(2900 / 3, rel=0.1)


def test_gaps_between_all_kernels_are_left_to_overhead_bound(raw, facts_from):
    """Constructed: one op on the host made 3 ms longer where everything waits for launches anyway."""
    document = raw("faults/clean")
    events = document["traceEvents"]
    op = [e for e in events if e.get("name") == "aten::t"][20]
    for event in events:
        if event.get("ph") == "X" and event["ts"] > op["ts"]:
            event["ts"] += 3000
        elif event.get("ph") == "X" and event["ts"] + event.get("dur", 0) > op["ts"]:
            event["dur"] += 3000
    (found,) = results(facts_from(document))
    assert found.subject == "aten::t"
    assert found.time_at_stake_us == pytest.approx(1000, rel=0.01)


def test_random_numbers_made_on_the_cpu(facts_of, raw):
    (found,) = results(facts_of("../h200_idle/cpu_ops_before_copy"))
    events = raw("../h200_idle/cpu_ops_before_copy")["traceEvents"]
    assert (found.severity, found.scope, found.subject) == ("warning", "step", "aten::normal_")
    made = [
        e["dur"]
        for e in events
        if e.get("name") in {"aten::normal_", "aten::mul", "aten::copy_"} and e["dur"] > 1500
    ]
    assert found.time_at_stake_us == pytest.approx(sum(made) / 3, rel=0.1)


def test_a_run_of_small_ops_on_the_cpu(facts_of):
    """Half of it is the wait's before it: without that the GPU would still have had work."""
    (found,) = results(facts_of("../h200_idle/tiny_cpu_ops"))
    assert (found.severity, found.scope, found.per_call) == ("warning", "step", 1)
    assert "ops that launched nothing" in found.summary


@pytest.mark.parametrize("name", ["cold_late", "cold_mixed", "alloc_first_only"])
def test_what_is_done_for_the_first_time_is_not_repeated(facts_of, name):
    """Up to 0.1 s in an op that loads a library, which is cold-start's."""
    assert results(facts_of(f"../h200_waits/{name}")) == []
