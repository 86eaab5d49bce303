"""Where the time of a device went, against a sweep over the raw JSON."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from tests.compare.ranks.recorded import raw

from tracehunch.checks._idle import IdleCause
from tracehunch.compare.ranks.breakdown import CAUSES

COLLECTIVE = re.compile(r"^nccl|one_shot_all_reduce")
COPIES = ("gpu_memcpy", "gpu_memset")
RANKS = [
    *(f"h200/ranks/{job}/rank{rank}" for job in ("ddp", "tp") for rank in (0, 1)),
    *(f"h200_collectives/{job}_rank{rank}" for job in ("parts", "groups") for rank in (0, 1)),
]
OTHERS = ["h200/models/llama_sdpa_train", "h200_idle/stall_behind_queue", "h200_waits/pinned_compute_stream"]


def parts(breakdown):
    return breakdown.compute_ns, breakdown.exposed_communication_ns, breakdown.copy_ns


def ns(microseconds) -> int:
    return int(Decimal(str(microseconds)) * 1000)


def spans(document):
    """(start, end, kind) of the GPU's activities."""
    for event in document["traceEvents"]:
        category = event.get("cat")
        if category == "kernel" or category in COPIES:
            kind = "copy" if category in COPIES else "comm" if COLLECTIVE.search(event["name"]) else "compute"
            yield ns(event["ts"]), ns(event["ts"]) + ns(event["dur"]), kind


def swept(document):
    """Walk along the time axis from event to event: compute, exposed, copies, communication, neither."""
    moments = sorted(
        (at, step, kind) for start, end, kind in spans(document) for at, step in ((start, 1), (end, -1))
    )
    running = {"compute": 0, "comm": 0, "copy": 0}
    total = {"compute": 0, "exposed": 0, "copy": 0, "comm": 0, "idle": 0}
    before = moments[0][0]
    for at, step, kind in moments:
        first = next((one for one in ("compute", "comm", "copy") if running[one]), "idle")
        total["exposed" if first == "comm" else first] += at - before
        total["comm"] += (at - before) * (running["comm"] > 0)
        running[kind] += step
        before = at
    return total


@pytest.mark.parametrize("name", [*RANKS, *OTHERS])
def test_the_parts_add_up_to_the_window_to_the_nanosecond(examined, name):
    for one in examined(name).breakdown:
        assert sum(parts(one)) + one.whole_idle_ns == one.window_ns


@pytest.mark.parametrize("name", [*RANKS, *OTHERS])
def test_the_parts_are_those_of_a_sweep_over_the_raw_events(examined, name):
    (one,) = examined(name).breakdown
    expected = swept(raw(name))
    assert parts(one) == (expected["compute"], expected["exposed"], expected["copy"])
    assert one.communication_ns == expected["comm"]
    assert one.overlapped_ns == expected["comm"] - expected["exposed"]


def test_a_window_lasts_from_the_first_event_to_where_the_profiler_flushes(examined):
    document = raw("h200/ranks/ddp/rank0")
    events = document["traceEvents"]
    first = min(ns(e["ts"]) for e in events if e.get("cat") in ("cpu_op", "user_annotation"))
    flush = max(ns(e["ts"]) for e in events if e.get("name") == "cudaDeviceSynchronize")
    activities = list(spans(document))
    (one,) = examined("h200/ranks/ddp/rank0").breakdown
    assert one.window_ns == flush - first
    around = one.window_ns - (max(end for _, end, _ in activities) - min(start for start, _, _ in activities))
    assert one.whole_idle_ns == swept(document)["idle"] + around


def test_a_device_at_work_since_before_the_recording_has_a_window_from_its_first_activity(examined):
    document = raw("h200/ranks/ddp/rank1")
    activities = list(spans(document))
    (one,) = examined("h200/ranks/ddp/rank1").breakdown
    assert one.window_ns == max(end for _, end, _ in activities) - min(start for start, _, _ in activities)


def test_time_in_which_the_profiler_was_off_is_in_no_part(examined, changed):
    before = examined("h200/ranks/tp/rank0").breakdown[0]

    def pause(document):
        step = next(e for e in document["traceEvents"] if e.get("name") == "ProfilerStep#4")
        for event in document["traceEvents"]:
            if event.get("ts", 0) >= step["ts"]:
                event["ts"] += 2e6
        step["name"] = "ProfilerStep#9"

    after = changed("h200/ranks/tp/rank0", pause).breakdown[0]
    assert sum(parts(after)) + after.whole_idle_ns == after.window_ns
    assert parts(after) == pytest.approx(parts(before), abs=100)
    assert before.window_ns * 0.9 < after.window_ns <= before.window_ns


def test_a_gpu_whose_clock_is_behind_the_hosts_adds_up_too(examined, changed):
    before = examined("h200/ranks/tp/rank0").breakdown[0]

    def behind(document):
        for event in document["traceEvents"]:
            if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
                event["ts"] = round(event["ts"] - 5_000, 3)

    after = changed("h200/ranks/tp/rank0", behind).breakdown[0]
    assert parts(after) == pytest.approx(parts(before), abs=100)
    assert sum(parts(after)) + after.whole_idle_ns == after.window_ns
    assert after.window_ns == pytest.approx(before.window_ns, rel=0.02)


def test_idle_time_has_the_causes_of_the_checks(examined):
    assert len(CAUSES) == len(IdleCause)
    idle = examined("h200/ranks/ddp/rank0").breakdown[0].idle_ns
    assert set(idle) <= set(CAUSES)
    assert max(idle, key=idle.get) == "launch"
    assert all(time > 0 for time in idle.values())
    assert "stall" in examined("h200_idle/sleep_in_forward").breakdown[0].idle_ns


def test_each_device_of_a_process_has_its_own_breakdown(examined, changed):
    def split(document):
        for event in document["traceEvents"]:
            if event.get("cat") == "kernel" and event["name"].startswith("nccl"):
                event["args"]["device"] = event["pid"] = 1

    first, second = changed("h200/ranks/tp/rank0", split).breakdown
    one = examined("h200/ranks/tp/rank0").breakdown[0]
    assert (first.device, second.device) == (0, 1)
    assert (first.compute_ns, first.communication_ns) == (one.compute_ns, 0)
    assert (second.compute_ns, second.exposed_communication_ns) == (0, one.exposed_communication_ns)
    for each in (first, second):
        assert sum(parts(each)) + each.whole_idle_ns == each.window_ns
