"""Slow calls were recorded beside another process, or made by stretching kernels of recorded traces."""

import statistics

import numpy as np
import pytest

from tracehunch.checks import clock_jitter
from tracehunch.checks._activities import gpu_positions, launched
from tracehunch.checks._scopes import call_of, place
from tracehunch.verdict import CannotTell, Finding


def results(facts):
    return list(clock_jitter.check(facts))


def kernels_by_call(document, annotation):
    """GPU time of each call, by the launches inside it."""
    calls = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in document["traceEvents"]
        if e.get("name") == annotation and e.get("cat") == "user_annotation"
    )
    launched = {
        e["args"]["correlation"]: e["ts"]
        for e in document["traceEvents"]
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }
    kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel"]
    return [
        [e for e in kernels if start <= launched.get(e["args"]["correlation"], -1) < end]
        for start, end in calls
    ]


def test_another_process_on_the_gpu(facts_of, raw):
    (found,) = results(facts_of("../h200_waits/jitter_contended"))
    assert (found.scope, found.severity, found.time_at_stake_us) == ("step", "note", 0)
    times = [
        sum(e["dur"] for e in call) for call in kernels_by_call(raw("../h200_waits/jitter_contended"), "step")
    ]
    assert [number for number, time in enumerate(times) if time > 1.3 * statistics.median(times)] == [3, 4]
    assert "in 2 of 8 calls" in found.summary
    said = float(found.cause.rsplit("of a call is ", 1)[1].removesuffix(" ms."))
    assert said == pytest.approx(statistics.median(times) / 1e3, rel=2e-3)  # with a memset or two
    assert "Read medians" in found.cause


def slower(document, annotation, which, factor, wanted=lambda _event: True):
    """Stretch kernels of one call; all that follows on the GPU is delayed."""
    for event in kernels_by_call(document, annotation)[which]:
        if wanted(event):
            more, end = event["dur"] * (factor - 1), event["ts"] + event["dur"]
            event["dur"] += more
            for later in document["traceEvents"]:
                if later.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") and later["ts"] >= end:
                    later["ts"] += more
    return document


def test_all_kernels_of_one_call_at_half_the_clock(raw, facts_from):
    document = slower(raw("seeds/shapes_naive_inplace"), "attn_fwd", 1, 2.0)
    (found,) = results(facts_from(document))
    assert (found.scope, found.severity, found.confidence) == ("attn_fwd", "note", "high")
    assert "up to 2.0" in found.summary
    assert "in 1 of 3 calls" in found.summary
    assert found.cause.startswith("Nearly all kernels are slower there")
    cited = {document["traceEvents"][position]["dur"] > 20 for position in found.evidence}
    assert cited == {True}


def test_one_kernel_alone(raw, facts_from):
    document = slower(raw("seeds/shapes_naive_inplace"), "attn_fwd", 2, 1.6, lambda e: "softmax" in e["name"])
    (found,) = results(facts_from(document))
    assert "softmax" in found.subject
    assert found.cause.startswith("Others kept their time")


def test_a_fifth_slower_is_within_noise(raw, facts_from):
    assert results(facts_from(slower(raw("seeds/shapes_naive_inplace"), "attn_fwd", 1, 1.2))) == []


def test_times_that_grow_from_call_to_call_are_growing_work(raw, facts_from):
    document = slower(slower(raw("seeds/naive_inplace"), "attn_fwd", 1, 1.2), "attn_fwd", 2, 1.7)
    assert results(facts_from(document)) == []


def test_other_shapes_are_other_work(raw, facts_from):
    document = slower(raw("seeds/shapes_naive_inplace"), "attn_fwd", 1, 2.0)
    calls = [
        e for e in document["traceEvents"] if e.get("name") == "attn_fwd" and e["cat"] == "user_annotation"
    ]
    start, end = sorted((e["ts"], e["ts"] + e["dur"]) for e in calls)[1]
    for event in document["traceEvents"]:
        if event.get("cat") == "cpu_op" and start <= event["ts"] < end:
            event["args"]["Input Dims"] = [[8, 16, 2048, 64]]
    assert results(facts_from(document)) == []


def test_kernels_beside_others_are_not_judged(raw, facts_from):
    document = slower(raw("seeds/shapes_sdpa_efficient"), "sdpa_fwd", 1, 2.0)
    assert len(results(facts_from(document))) == 1
    for event in list(kernels_by_call(document, "sdpa_fwd")[1]):
        args = {**event["args"], "stream": 99, "correlation": 10_000_000}
        document["traceEvents"].append({**event, "name": "beside", "tid": 99, "args": args})
    assert results(facts_from(document)) == []


def test_no_recorded_trace_has_a_finding(facts_of, recorded):
    assert [name for name in recorded if results(facts_of(name))] == []


@pytest.mark.parametrize("name", ["jitter_from_idle", "cold_mixed", "item_gpu_bound", "pageable_dtoh"])
def test_it_is_silent_where_kernels_keep_their_time(facts_of, name):
    assert results(facts_of(f"../h200_waits/{name}")) == []


def test_two_calls_do_not_tell_which_is_usual(raw, facts_from):
    document = slower(raw("models/llama_sdpa_train"), "optimizer", 1, 2.0)
    found = [one for one in results(facts_from(document)) if one.scope == "optimizer"]
    assert len(found) == 1
    assert isinstance(found[0], CannotTell)
    assert not isinstance(found[0], Finding)


@pytest.mark.parametrize("name", ["seeds/naive", "models/llama_sdpa_train", "ranks/ddp/rank0"])
def test_kernels_are_matched_by_what_they_are_and_their_number_in_the_call(facts_of, name):
    facts = facts_of(name)
    trace, table = facts.tree.trace, facts.tree.trace.gpu
    rows = launched(facts, lambda use: use.kind == "kernel")
    matched = 0
    for scope, mine in place(facts).by_scope(rows):
        calls, by_kind = len(scope.scope.calls), {}
        at, call = gpu_positions(facts, mine), call_of(facts, scope, mine)
        order = np.argsort(trace.start_ns[mine], kind="stable").tolist()
        for number in order:
            kind = (
                int(table.device[at[number]]),
                int(trace.name[mine[number]]),
                *table.grid[at[number]].tolist(),
                *table.block[at[number]].tolist(),
            )
            by_kind.setdefault(kind, [[] for _ in range(calls)])[call[number]].append(int(mine[number]))
        same = [by_kind[kind] for kind in sorted(by_kind) if len(set(map(len, by_kind[kind]))) == 1]
        expected = [[row for kind in same for row in kind[number]] for number in range(calls)]
        assert clock_jitter._repeated(facts, scope, mine).rows.tolist() == expected
        matched += sum(map(len, expected))
    assert matched > 0.5 * rows.size
