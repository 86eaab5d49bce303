"""Kernels beside a waiting collective are slower: that is no change, and a lower clock is one.

Constructed: six cycles of four steps of a rank, 40 kernels and one collective a step. In a step in which the
rank waits for another, the collective runs beside the last 25 kernels, and these take 1.6 times as long.
"""

import json

import numpy as np
import pytest

from tracehunch.compare.over_time import cycle_of, over_time
from tracehunch.compare.over_time.alone import alone_us, occurrences
from tracehunch.facts.activities import Activities
from tracehunch.report import over_time_terminal
from tracehunch.trace import read_bytes

STEPS = [cycle * 6 + step for cycle in range(6) for step in range(2, 6)]
KERNELS, BESIDE, FROM = 40, 25, 20
SLOWER_BESIDE = 1.6
NEVER, ALWAYS = (lambda _: False), (lambda _: True)


def step_events(step, *, waits, clock, wall, beside, rng):
    """A ProfilerStep with train_step in it: launches, kernels with noise of 1 %, the collective."""
    start, launch, at = 1_000_000.0 + 100_000 * step, [], 0.0
    events = [
        {"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": wall + 20, "tid": 1},
        {"cat": "user_annotation", "name": "train_step", "ts": start + 5, "dur": wall, "tid": 1},
    ]
    kernels = []
    for number in range(KERNELS):
        slow = SLOWER_BESIDE if waits and number >= KERNELS - beside else 1.0
        length = (30 + number % 3) * slow * clock * (1 + 0.01 * rng.standard_normal())
        kernels.append((f"gemm_{number % 3}", 7, start + 2000 + at, length))
        at += length + 1
    first = kernels[KERNELS - beside][2] if waits else start + 2000 + at
    kernels.append(("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, first, start + 2100 + at - first))
    for number, (name, stream, ts, length) in enumerate(kernels):
        of = {"correlation": step * 100 + number}
        launch.append({"cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": start + 20 + 10 * number})
        launch[-1] |= {"dur": 5, "tid": 1, "args": of}
        args = {**of, "device": 0, "stream": stream, "grid": [64, 1, 1], "block": [128, 1, 1]}
        events.append({"cat": "kernel", "name": name, "ts": ts, "dur": length, "tid": stream, "args": args})
    return [{"ph": "X", "pid": 0 if e["cat"] == "kernel" else 1, **e} for e in (*events, *launch)]


def run_of(waits, *, clock=lambda _: 1.0, wall=lambda _: 6000.0, beside=BESIDE, seed=0):
    rng = np.random.default_rng(seed)
    cycles = []
    for cycle in range(6):
        of_cycle = {"waits": waits, "clock": clock, "wall": wall}
        events = [
            event
            for step in STEPS[4 * cycle : 4 * cycle + 4]
            for event in step_events(
                step, **{key: say(step) for key, say in of_cycle.items()}, beside=beside, rng=rng
            )
        ]
        document = {"traceEvents": events, "distributedInfo": {"rank": 0, "world_size": 2}}
        name = f"cycle{cycle}.json"
        cycles.append(cycle_of(read_bytes(json.dumps(document).encode(), name), name))
    return over_time(cycles)


def slower(step):
    return 1.25 if step >= FROM else 1.0


def later(step):
    return step >= FROM


def earlier(step):
    return step < FROM


def now_and_then(step):
    return step % 7 in (0, 2, 3)


@pytest.mark.parametrize("waits", [NEVER, ALWAYS, later, earlier, now_and_then])
def test_who_runs_ahead_is_no_change(waits):
    assert [run.shifts for run in run_of(waits).runs] == [()]


def test_it_is_said_among_the_rest():
    report = run_of(later)
    key = "train_step", "gpu_time_without_collectives"
    (drift,) = (one for one in report.runs[0].drifts if (one.scope, one.key) == key)
    assert (drift.kind, drift.at[0].step) == ("beside-collectives", FROM)
    assert drift.share == pytest.approx(0.6 * BESIDE / KERNELS, abs=0.02)
    text = " ".join(over_time_terminal.render(report).split())
    assert "Nothing changed over time." in text
    assert text.count("who runs ahead changed") == 1
    assert f"from between steps {FROM - 3} and {FROM} (cycle 4 of 6) on" in text


@pytest.mark.parametrize("waits", [NEVER, ALWAYS, later, earlier, now_and_then])
def test_a_lower_clock_is_found_whoever_runs_ahead(waits):
    (run,) = run_of(waits, clock=slower).runs
    (shift,) = run.shifts
    assert (shift.scope, shift.kind, shift.place.step) == ("train_step", "step", FROM)
    assert shift.cost_us > 0
    cause = shift.causes[0]
    assert cause.id == "clock"
    assert {one.id for one in shift.causes[1:]} <= {"beside-collectives"}
    assert "1.25x" in cause.text


@pytest.mark.parametrize("waits", [NEVER, later, now_and_then])
def test_a_clock_that_falls_slowly_is_a_trend(waits):
    (shift,) = run_of(waits, clock=lambda step: 1 + step / 100).runs[0].shifts
    assert (shift.scope, shift.kind, shift.causes[0].id) == ("train_step", "trend", "clock")


def test_turns_taken_at_random_are_no_change():
    for seed in range(6):
        ahead = np.random.default_rng(seed).random(40) < 0.5
        assert run_of(lambda step, ahead=ahead: ahead[step], seed=seed).runs[0].shifts == ()


def test_kernels_that_are_always_beside_collectives_count_where_calls_take_longer():
    """All kernels run beside: that they are slower cannot be told from waiting, unless the calls are, too."""
    waits = {"waits": ALWAYS, "beside": KERNELS}
    report = run_of(**waits, clock=slower)
    assert report.runs[0].shifts == ()
    assert "too few other kernels" in " ".join(over_time_terminal.render(report).split())
    (shift,) = run_of(**waits, clock=slower, wall=lambda step: 6000.0 * slower(step)).runs[0].shifts
    assert {"wall_time", "gpu_time_without_collectives"} <= {one.key for one in shift.drifts}


def test_what_overlaps_a_collective_of_its_gpu():
    start = np.array([0, 10, 20, 30, 0, 15])
    length = np.array([5, 10, 5, 5, 12, 5])
    device = np.array([0, 0, 0, 0, 1, 0])
    collective = np.array([False, False, False, False, False, True])
    none = np.zeros(6, dtype=np.int64)
    gpu = Activities(none, none, length * 1000, start * 1000, device, none, none, none, (), none)
    assert np.isnan(alone_us(gpu, collective)).tolist() == [False, True, False, False, False, True]


def test_occurrences_of_some_uses():
    assert occurrences(np.array([2, 1, 3]), np.array([2, 0])).tolist() == [3, 4, 5, 0, 1]
