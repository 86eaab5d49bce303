"""The exposed part was counted from the raw JSON by cutting time at every edge of an interval."""

import itertools

import pytest

from tracehunch.checks import exposed_communication
from tracehunch.verdict import CannotTell, Finding


def results(facts):
    return list(exposed_communication.check(facts))


def exposed_us(document):
    """Time in which collectives run and no other kernel does; launched in the window only."""
    calls = {
        e["args"]["correlation"]
        for e in document["traceEvents"]
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }
    kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel"]
    collectives = [e for e in kernels if "nccl" in e["name"] and e["args"]["correlation"] in calls]
    others = [e for e in kernels if "nccl" not in e["name"]]
    edges = sorted({edge for e in kernels for edge in (e["ts"], e["ts"] + e["dur"])})
    return sum(
        high - low
        for low, high in itertools.pairwise(edges)
        if any(e["ts"] <= low and e["ts"] + e["dur"] >= high for e in collectives)
        and not any(e["ts"] <= low and e["ts"] + e["dur"] >= high for e in others)
    )


@pytest.mark.parametrize(
    ("name", "scope", "severity"),
    [
        ("tp/rank0", "tp_step", "note"),
        ("tp/rank1", "tp_step", "warning"),
        ("ddp/rank0", "backward", "note"),
        ("ddp/rank1", "backward", "note"),
    ],
)
def test_what_no_kernel_overlaps_is_exposed(facts_of, raw, name, scope, severity):
    (found,) = results(facts_of(f"ranks/{name}"))
    assert (found.scope, found.severity, found.per_call) == (scope, severity, 6)
    said = float(found.summary.split(" overlapped ")[1].split(" ")[0])
    said *= 1e3 if " ms (" in found.summary.split(" overlapped ")[1] else 1
    assert said == pytest.approx(exposed_us(raw(f"ranks/{name}")) / 3, rel=2e-3)
    assert found.time_at_stake_us <= said + 1e-3
    assert len(found.evidence) == 18


def test_what_is_hidden_is_not_counted(raw, facts_from):
    document = raw("ranks/tp/rank0")
    kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel"]
    for event in [e for e in kernels if "nccl" in e["name"]]:
        # an ordinary kernel on another stream for all but 5 us of each collective
        args = {**event["args"], "stream": 99, "correlation": 10_000_000 + event["args"]["correlation"]}
        document["traceEvents"].append(
            {**event, "name": "busy", "dur": event["dur"] - 5, "tid": 99, "args": args}
        )
    assert exposed_us(document) == pytest.approx(18 * 5, abs=0.01)
    (found,) = results(facts_from(document))
    assert "overlapped 30.00 us" in found.summary
    assert found.severity == "note"


def test_waiting_for_the_other_rank_is_told_apart_where_sizes_are_recorded(facts_of):
    (found,) = results(facts_of("ranks/tp/rank1"))
    assert "waiting for another rank, and not counted" in found.cause
    assert found.time_at_stake_us < 500  # of 2139 us


def test_collectives_whose_launch_is_not_known_count_for_the_whole_trace(raw, facts_from):
    document = raw("ranks/tp/rank0")
    expected = exposed_us(document)
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel" and "nccl" in event["name"]:
            event["args"]["correlation"] = 0
    (found,) = results(facts_from(document))
    assert found.scope == "whole"
    assert f"overlapped {expected:.1f} us" in found.summary


def test_no_other_recorded_trace_has_a_finding(facts_of, recorded):
    found = {name for name in recorded if results(facts_of(name))}
    assert found == {"ranks/ddp/rank0", "ranks/ddp/rank1", "ranks/tp/rank0", "ranks/tp/rank1"}


def test_without_gpu_activities_it_cannot_tell(raw, facts_from):
    document = raw("ranks/tp/rank0")
    gpu = ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_runtime", "cuda_driver")
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") not in gpu]
    (untold,) = results(facts_from(document))
    assert isinstance(untold, CannotTell)
    assert not isinstance(untold, Finding)
    assert "ProfilerActivity.CUDA" in untold.record_with
