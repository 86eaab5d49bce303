"""From one call to the next, and outside PyTorch: against counts over the raw JSON."""

from itertools import pairwise
from statistics import median

import pytest

PINNED, PREFETCHED = "h200_waits/pinned_compute_stream", "h200_waits/prefetch_side_stream"
CLEAN, STALLED = "h200/faults/clean", "h200/faults/cpu_stall"


def scope_of(diff, name):
    return next(scope for scope in diff.scopes if scope.pair.after.scope.name == name)


def steps(events):
    return sorted(
        (e for e in events if e.get("cat") == "user_annotation" and e["name"] == "step"),
        key=lambda event: event["ts"],
    )


def raw_periods(events):
    """End of a call: its own, or that of the last GPU activity which a launch inside it started."""
    launches = {
        e["args"]["correlation"]: e
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})
    }
    gpu = [e for e in events if str(e.get("cat")).startswith(("kernel", "gpu_mem"))]
    ends = []
    for step in steps(events):
        end = step["ts"] + step["dur"]
        ends.append(end)
        for event in gpu:
            launch = launches.get(event["args"]["correlation"])
            if launch is not None and step["ts"] <= launch["ts"] < end:
                ends[-1] = max(ends[-1], event["ts"] + event["dur"])
    return [later - earlier for earlier, later in pairwise(ends)]


def test_copies_beside_the_kernels_make_calls_come_round_sooner(changed, raw_events):
    scope = scope_of(changed(PINNED, PREFETCHED), "step")
    assert {scope.fact(key).outcome for key in ("gpu_time", "wall_time")} == {"noise"}
    assert (scope.time_key, scope.period.outcome) == ("period", "less")
    for name, side in ((PINNED, scope.period.before), (PREFETCHED, scope.period.after)):
        found = raw_periods(raw_events(name))
        assert side.value == pytest.approx(median(found), abs=0.01)
        assert (side.low, side.high) == pytest.approx((min(found), max(found)), abs=0.01)
        assert side.calls == len(found) == 3
    assert scope.delta_us == pytest.approx(scope.period.delta_us)


def test_calls_that_come_round_later_are_a_regression(changed):
    found = changed(PREFETCHED, PINNED).regressions
    (slower,) = [one for one in found if "slower" in one.text]
    assert slower.severity == "warning"
    assert slower.text.startswith("step is slower: from one call to the next 5.061 ms -> 6.279 ms")


def test_only_the_scope_that_leads_has_a_rhythm(changed):
    found = changed("h200/ranks/ddp/rank0", "h200/ranks/ddp/rank1")
    told = {scope.pair.name for scope in found.scopes if scope.period is not None}
    assert told <= {"train_step"}


def test_the_host_outside_pytorch(changed, raw_events):
    scope = scope_of(changed(CLEAN, STALLED), "step")
    for name, side in ((CLEAN, scope.outside.before), (STALLED, scope.outside.after)):
        events = raw_events(name)
        free = []
        for step in steps(events):
            inside = sorted(
                (e["ts"], e["ts"] + e["dur"])
                for e in events
                if e.get("cat") in ("cpu_op", "cuda_runtime", "cuda_driver")
                and e["tid"] == step["tid"]
                and step["ts"] <= e["ts"] < step["ts"] + step["dur"]
            )
            busy, reach = 0.0, step["ts"]
            for start, end in inside:
                busy += max(end - max(start, reach), 0)
                reach = max(reach, end)
            free.append(step["dur"] - busy)
        assert side.value == pytest.approx(median(free), abs=0.01)
    assert (scope.outside.outcome, round(scope.outside.delta_us, -3)) == ("more", 3000)
