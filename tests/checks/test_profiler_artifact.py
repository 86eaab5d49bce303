"""The profiler's own work: one constructed at a place of our choice, and recorded ones.

It cannot be that the check cannot tell: PyTorch records overhead whenever there is some.
"""

from pathlib import Path

import pytest

from tracehunch.checks import host_stall, overhead_bound, profiler_artifact
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.trace.model import Cat
from tracehunch.tree import link
from tracehunch.units import time_us

DATA = Path(__file__).parents[1] / "data" / "h200"
TRACES = sorted(
    path.relative_to(DATA).as_posix().removesuffix(".json.gz") for path in DATA.rglob("*.json.gz")
)


def results(facts):
    return list(profiler_artifact.check(facts))


def buffer_request(document, *, after, by_us=2200.0, name="Activity Buffer Request"):
    """Constructed: in the ``after``-th launch the profiler asks for a buffer; what follows is late."""
    events = document["traceEvents"]
    calls = sorted((e for e in events if e.get("name") == "cudaLaunchKernel"), key=lambda e: e["ts"])
    launch = calls[after]
    at = launch["ts"] + 1.0
    for event in events:
        if event.get("ph") == "X" and event["ts"] >= at:
            event["ts"] += by_us
        elif event.get("ph") == "X" and event["ts"] + event.get("dur", 0) >= at:
            event["dur"] += by_us
    overhead = {"ph": "X", "cat": "overhead", "name": name, "pid": -1, "tid": 0, "ts": at, "dur": by_us}
    events.append(overhead | {"args": {}})
    return document


@pytest.mark.parametrize("after", [0, 20])
def test_a_gap_at_the_start_or_in_the_middle(raw, facts_from, facts_of, after):
    facts = facts_from(buffer_request(raw("faults/clean"), after=after))
    (found,) = results(facts)
    assert (found.severity, found.scope, found.subject) == ("note", "step", "Activity Buffer Request")
    assert found.time_at_stake_us == 0
    assert found.evidence == (len(raw("faults/clean")["traceEvents"]),)
    assert "2.20" in found.summary
    (others,) = overhead_bound.check(facts)
    (before,) = overhead_bound.check(facts_of("faults/clean"))
    assert others.time_at_stake_us == pytest.approx(before.time_at_stake_us, rel=0.02)
    assert list(host_stall.check(facts)) == []


def test_code_that_cuda_loads_is_no_overhead_of_the_profiler(raw, facts_from):
    document = buffer_request(raw("faults/clean"), after=20, name="Lazy Function Loading")
    assert results(facts_from(document)) == []


def test_what_held_nobody_up_is_not_reported(facts_of):
    """2.2 ms in another thread: launches go on meanwhile."""
    trace = facts_of("ranks/ddp/rank0").tree.trace
    names = {trace.name_of(row) for row in trace.rows(Cat.OVERHEAD)}
    assert "Activity Buffer Request" in names
    assert results(facts_of("ranks/ddp/rank0")) == []


@pytest.mark.parametrize("name", TRACES)
def test_no_recorded_trace_has_one(facts_of, name):
    """In one of 5 s a request of 0.4 ms held up a launch; 0.01 % is not worth a word."""
    assert results(facts_of(name)) == []


def test_now_and_then_in_a_long_recording(big_trace):
    """Requests of 0.4 ms in 3 s of 24 steps; of other overhead the launching thread was not held up."""
    (found,) = results(measure(link(read(big_trace))))
    assert (found.severity, found.scope) == ("note", "train_step")
    assert len(found.evidence) == 10
    assert found.subject == "Activity Buffer Request, Buffer Flush"


@pytest.mark.parametrize("name", ["jitter_from_idle", "alloc_first_only", "cold_mixed"])
def test_at_the_start_of_a_recording(facts_of, raw, name):
    """2 to 3 ms in the first launch that was recorded."""
    (found,) = results(facts_of(f"../h200_waits/{name}"))
    rows = [e for e in raw(f"../h200_waits/{name}")["traceEvents"] if e.get("cat") == "overhead"]
    requests = [e for e in rows if e["name"] == "Activity Buffer Request"]
    assert (found.severity, found.time_at_stake_us, len(found.evidence)) == ("note", 0, 1)
    assert found.subject == "Activity Buffer Request"
    assert any(time_us(e["dur"]) in found.summary for e in requests)
