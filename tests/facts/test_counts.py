"""The counts of the file, against expected.json."""

import json
from pathlib import Path

import pytest

from tracehunch.errors import TracehunchError
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.tree import link

COUNTS = (
    "n_events", "n_complete", "n_kernels", "n_gpu_ops", "kernel_sum_us", "gpu_busy_us", "n_steps",
    "n_cpu_ops", "n_launches", "n_orphan_gpu_ops", "n_launches_without_gpu_op", "n_bad_dur", "n_overhead",
    "rank", "world_size",
)  # fmt: skip
CASES = Path(__file__).parents[1] / "data" / "cases" / "public"
EXPECTED = {
    name: entry
    for name, entry in json.loads((CASES / "expected.json").read_text()).items()
    if not name.startswith("_") and entry["load"] != "error" and "error" not in entry.get("also_accept", [])
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_counts(name, tmp_path):
    entry = EXPECTED[name]
    path = tmp_path / entry["as"]
    path.write_bytes((CASES / name).read_bytes())
    try:
        counts = measure(link(read(path))).counts
    except TracehunchError:
        pytest.skip("not readable here (a compression that needs an optional package)")
    tolerance = entry["facts"].get("tolerance_us", 0.0011)
    for key in COUNTS:
        if key in entry["facts"]:
            assert counts.get(key) == pytest.approx(
                entry["facts"][key], abs=tolerance if key.endswith("_us") else 0
            ), key


def test_nothing_is_said_of_a_gpu_that_there_is_not(cases):
    facts = measure(link(read(cases / "cpu_only_no_dev.json")))
    for scope in facts.scopes:
        assert not {
            "kernels",
            "gpu_time",
            "gpu_idle",
            "launches",
            "tensor_cores",
            "occupancy",
            "syncs",
        } & set(scope.facts)
    assert facts.scope("ProfilerStep").value("leaf_ops") == 4


def test_a_gpu_that_was_not_recorded_is_not_idle(cases):
    facts = measure(link(read(cases / "launches_no_kernels_a.json")))
    for scope in facts.scopes:
        assert "launches" in scope.facts
        assert not {"kernels", "gpu_time", "gpu_busy", "gpu_idle"} & set(scope.facts)


def test_calls_whose_activities_were_lost_are_left_out(cases):
    facts = measure(link(read(cases / "steps_without_gpu_6_of_8.json")))
    step = facts.scope("ProfilerStep")
    kernels = step.facts["kernels"]
    assert (kernels.value, kernels.low, kernels.high) == (3, 3, 3)
    assert all(use.per_call <= 3 for use in step.kernels)
    assert step.value("launches") == 3


def test_a_gap_between_recordings_is_no_idle_time(cases):
    facts = measure(link(read(cases / "two_cycles_gap5s.json")))
    assert facts.scope("whole").value("wall_time") < 2000
    assert facts.scope("whole").value("gpu_idle") < 0.5


def test_devices_are_not_added_up(cases):
    facts = measure(link(read(cases / "several_gpus_4.json")))
    whole = facts.scope("whole")
    busy = facts.counts["gpu_busy_us"]
    assert whole.value("gpu_busy") == pytest.approx(sum(busy.values()) / 4, abs=0.001)
    assert whole.value("gpu_busy") <= whole.value("wall_time")


def test_streams_overlap(cases):
    whole = measure(link(read(cases / "two_streams.json"))).scope("whole")
    assert whole.value("gpu_time") == pytest.approx(720.0)
    assert whole.value("gpu_busy") == pytest.approx(375.794)


def test_delays_are_unknown_where_clocks_disagree(cases):
    facts = measure(link(read(cases / "clock_skew_const.json")))
    assert "queue_delay" not in facts.scope("ProfilerStep").facts
    assert "gpu_time" in facts.scope("ProfilerStep").facts
