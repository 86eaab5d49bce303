"""Waits were summed from the raw JSON: synchronising calls inside an op or annotation of the step."""

import pytest

from tracehunch.checks import check_id, run, sync_stall
from tracehunch.verdict import CannotTell


def findings(facts):
    return [one for one in sync_stall.check(facts) if not isinstance(one, CannotTell)]


def waits_us(document, calls=3):
    """Microseconds of waits a call, but for the profiler's own at the end."""
    waits = [e for e in document["traceEvents"] if "Synchronize" in e.get("name", "")]
    own = max(waits, key=lambda event: event["ts"])
    return sum(e["dur"] for e in waits if e is not own) / calls


def test_items_are_blamed_for_their_waits_and_no_more(facts_of, raw):
    (found,) = findings(facts_of("faults/sync_item"))
    assert (found.scope, found.severity, found.subject, found.per_call) == (
        "step",
        "warning",
        "aten::item",
        6,
    )
    assert found.time_at_stake_us == pytest.approx(waits_us(raw("faults/sync_item")), rel=0.02)
    assert found.time_at_stake_us < 60
    assert "aten::_local_scalar_dense" in found.summary
    assert found.summary.endswith("at capture.py(243): item_sync")


def test_they_rank_below_what_the_launches_cost(facts_of):
    ids = [found.id for found in run(facts_of("faults/sync_item")).findings]
    assert ids.index("overhead-bound") < ids.index("sync-stall")


def test_where_with_one_argument_waits_for_its_size(facts_of, raw):
    name = "situations/moe_loop_where_syncs"
    (found,) = findings(facts_of(name))
    assert (found.scope, found.severity, found.subject, found.per_call) == (
        "step",
        "warning",
        "aten::where",
        8,
    )
    assert "aten::nonzero" in found.summary
    assert found.time_at_stake_us == pytest.approx(waits_us(raw(name)), rel=0.02)
    events = [raw(name)["traceEvents"][position]["name"] for position in found.evidence]
    assert events.count("cudaStreamSynchronize") == 24
    assert events.count("aten::where") == 24
    assert "torch.where(mask, a, b)" in found.fix


def idle_after(document, name):
    """Sum over waits of the shorter of two: the wait, and the GPU's idle time around its end."""
    events = document["traceEvents"]
    gpu = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    total = 0.0
    for wait in (e for e in events if e.get("name") == name):
        end = wait["ts"] + wait["dur"]
        before = max((stop for start, stop in gpu if start < end), default=end)
        after = min((start for start, _ in gpu if start >= end), default=end)
        total += min(wait["dur"], max(after - before, 0.0))
    return total


def test_long_waits_of_a_busy_gpu_cost_only_the_idle_time_after_them(facts_of, raw):
    name = "../h200_waits/item_gpu_bound"
    (found,) = findings(facts_of(name))
    waited = waits_us(raw(name))
    assert waited > 18_000  # microseconds a call, of 20.7 ms
    least = idle_after(raw(name), "cudaStreamSynchronize") / 3
    # later gaps, too, are shorter if the host has run ahead
    assert least * 0.95 <= found.time_at_stake_us <= 1.5 * least < 0.05 * waited
    assert found.severity == "warning"
    assert "nvjet_sm90" in found.cause
    assert "no cost of the wait" in found.cause


def test_each_op_that_reads_the_gpu_is_named(facts_of, raw):
    found = {one.subject: one for one in findings(facts_of("../h200_waits/sync_zoo"))}
    assert found.keys() >= {
        "aten::index",
        "aten::nonzero",
        "aten::_unique2",
        "aten::masked_select",
        "aten::is_nonzero",
        "aten::item",
        "aten::repeat_interleave",
        "text of tensors",
    }
    printing = found["text of tensors"]
    assert (printing.severity, printing.per_call) == ("warning", 41)
    assert "the printing's launches" in printing.cause
    waits = [e for e in raw("../h200_waits/sync_zoo")["traceEvents"] if "_tensor_str.py" in e.get("name", "")]
    text = max(e["dur"] for e in waits)  # the longest frame holds all of one text
    assert 0.5 * text < printing.time_at_stake_us < 1.1 * text
    assert "output_size" in found["aten::repeat_interleave"].fix
    assert "non_blocking" in found["aten::to"].fix


@pytest.mark.parametrize("name", ["bench_sync_inside", "bench_sync_between", "bench_sync_many"])
def test_a_benchmark_may_synchronise_between_steps(facts_of, name):
    assert findings(facts_of(f"../h200_waits/{name}")) == []


def test_between_the_phases_of_a_step_it_is_a_note(facts_of):
    (found,) = findings(facts_of("../h200_waits/bench_sync_phases"))
    assert (found.scope, found.severity, found.per_call) == ("train_step", "note", 1)


def test_after_each_layer_it_is_a_warning_but_not_for_the_last(facts_of):
    (found,) = findings(facts_of("../h200_waits/sync_each_layer"))
    assert (found.subject, found.severity, found.per_call) == ("cudaDeviceSynchronize", "warning", 5)
    assert "torch.cuda.Event" in found.fix


def test_a_copy_from_pinned_memory_need_not_wait(facts_of):
    (found,) = findings(facts_of("../h200_waits/pinned_htod_blocking"))
    assert found.fix.startswith("Pass non_blocking=True")


WARNINGS = {"faults/sync_item", "situations/moe_loop_where_syncs"}


def test_no_other_recorded_trace_has_a_warning(facts_of, recorded):
    warned = {name for name in recorded if any(one.severity != "note" for one in findings(facts_of(name)))}
    assert warned == WARNINGS


@pytest.mark.parametrize(
    "name", ["faults/cpu_stall", "faults/two_streams", "faults/h2d_pageable", "seeds/sdpa_math"]
)
def test_it_is_silent_where_only_the_profiler_waits(facts_of, name):
    assert findings(facts_of(name)) == []


def test_the_compilers_benchmarks_are_not_the_programs_waits(facts_of):
    assert findings(facts_of("situations/gpt_recompiles")) == []


def test_without_calls_of_the_runtime_it_cannot_tell(raw, facts_from):
    document = raw("faults/sync_item")
    document["traceEvents"] = [
        event for event in document["traceEvents"] if event.get("cat") not in ("cuda_runtime", "cuda_driver")
    ]
    (untold,) = sync_stall.check(facts_from(document))
    assert (untold.key, untold.scope) == (check_id(sync_stall), "whole")
    assert "ProfilerActivity.CUDA" in untold.record_with
