"""Real traces: the path covers each nanosecond once, and what is known of the recordings shows."""

from __future__ import annotations

import gzip
import json
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tracehunch.compare.critical import CriticalPath, critical_path
from tracehunch.judge import examine
from tracehunch.trace import read

DATA = Path(__file__).parents[2] / "data"
TRACES = (
    "h200/seeds/naive",
    "h200/seeds/sdpa_flash",
    "h200/seeds/sdpa_efficient",
    "h200/faults/contiguous_copy",
    "h200/faults/tiny_batch",
    "h200/faults/sync_item",
    "h200/faults/two_streams",
    "h200/models/llama_sdpa_train",
    "h200/situations/decode_cuda_graph",
    "h200/ranks/ddp/rank0",
    "h200/ranks/ddp/rank1",
    "h200/ranks/tp/rank1",
)


@cache
def path_of(name: str, scope: str | None = None) -> CriticalPath:
    return critical_path(examine(read(DATA / f"{name}.json.gz")).facts, scope)


def share(path: CriticalPath, *kinds: str) -> float:
    return sum(time for kind, time in path.kinds if kind.value in kinds) / path.length_ns


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("scope", [None, "whole"])
def test_each_nanosecond_has_one_owner_and_the_simulation_gives_the_recording_back(name, scope):
    path = path_of(name, scope)
    assert sum(time for _, time in path.kinds) == path.length_ns > 0
    assert sum(one.time_ns for one in path.contributors) == path.length_ns
    assert path.residual_ns == 0
    assert all(one.after_ns is not None and 0 <= one.after_ns <= path.length_ns for one in path.what_ifs)


def test_the_whole_trace_of_a_step_that_is_the_whole():
    path = path_of("h200/seeds/naive", "whole")
    with gzip.open(DATA / "h200/seeds/naive.json.gz") as file:
        rows = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
    kept = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset"}
    rows = [e for e in rows if e.get("cat") in kept]
    span = max(e["ts"] + e["dur"] for e in rows) - min(e["ts"] for e in rows)
    assert path.length_ns / 1e3 == pytest.approx(span, abs=0.01)


@pytest.mark.parametrize("name", ["h200/faults/clean", "h200/ranks/ddp/rank1", "h200/seeds/sdpa_efficient"])
def test_steps_that_follow_each_other_add_up(name):
    steps = path_of(name).calls
    first = path_of(name)
    numbers = range(2, 2 + steps)
    parts = [path_of(name, f"{first.scope}#{number}") for number in numbers]
    assert all(one.end_ns == after.start_ns for one, after in pairwise(parts))


@pytest.mark.parametrize(
    ("with_copies", "without"),
    [
        ("h200/seeds/naive", "h200/seeds/naive_inplace"),
        ("h200_waits/pinned_compute_stream", "h200_waits/prefetch_side_stream"),  # there they are hidden
    ],
)
def test_copies_free_is_what_the_same_without_them_takes(with_copies, without):
    (copies,) = (one for one in path_of(with_copies).what_ifs if one.id == "copies")
    assert copies.after_ns == pytest.approx(path_of(without).length_ns, rel=0.005)


def test_where_steps_overlap_differently_it_is_said_that_what_if_goes_by_all():
    assert any("median change of the 3 steps" in note for note in path_of("h200/seeds/sdpa_efficient").notes)
    assert not any("median change" in note for note in path_of("h200/seeds/naive").notes)


def test_many_small_launches_are_bound_by_the_host():
    path = path_of("h200/faults/tiny_batch")
    assert share(path, "op", "outside ops", "launch call") > 0.95
    assert next(one for one in path.what_ifs if one.id == "gpu").after_ns == path.length_ns


def test_large_kernels_are_bound_by_the_gpu():
    path = path_of("h200/seeds/naive")
    assert share(path, "kernel", "copy", "memset", "device gap") == 1
    # the GPU time of a call, from the profiler's own table, is 1.063 ms
    assert path.length_ns == pytest.approx(1_070_000, rel=0.01)


def test_a_step_bound_by_the_gpu_is_as_long_as_its_host_on_an_infinitely_fast_one():
    path = path_of("h200/seeds/naive")
    assert next(one for one in path.what_ifs if one.id == "gpu").after_ns == path.host_ns


def test_an_infinitely_fast_gpu_still_waits_for_other_ranks():
    path = path_of("h200/ranks/ddp/rank1")
    after = {one.id: one.after_ns for one in path.what_ifs}
    assert after["communication"] < after["gpu"]  # 73 % of the path is collectives
    assert after["gpu"] > 0.95 * path.length_ns


def test_items_make_the_host_wait():
    path = path_of("h200/faults/sync_item")
    assert any(one.kind == "wait call" and "cudaStreamSynchronize" in one.name for one in path.contributors)
    assert next(one for one in path.what_ifs if one.id == "waits").after_ns < path.length_ns


def test_autograds_thread_is_on_the_path_of_a_training_step():
    names = {one.name for one in path_of("h200/models/llama_sdpa_train").contributors}
    assert any(name.startswith("autograd::engine::evaluate_function") for name in names)


def test_one_rank_waits_in_a_collective_for_the_other():
    assert share(path_of("h200/ranks/ddp/rank0"), "communication") < 0.05
    assert share(path_of("h200/ranks/ddp/rank1"), "communication") > 0.5


@pytest.mark.shared
def test_the_event_sync_trace_of_another_project(public_traces):
    path = critical_path(examine(read(public_traces / "hta_event_sync.json.gz")).facts)
    found = {kind.value: time for kind, time in path.kinds}
    # as HolisticTraceAnalysis 0.5.0 has it: 38 us of GPU work
    assert found["kernel"] + found["copy"] == 38_000
    launches = [one for one in path.contributors if one.kind == "launch call" and not one.detail]
    # ... and 28 us of launch overhead, from the begin of the two calls that the path leaves the host by
    assert found["launch latency"] + sum(one.time_ns for one in launches) == 28_000
    assert path.length_ns == 3_154_000


@pytest.mark.shared
@pytest.mark.parametrize(
    "name",
    ["hta_diff_control", "hta_diff_test", "hta_mi250_rocm62", "hta_rank_unavailable", "tl_h100_qwen15_chat"],
)
def test_traces_of_other_projects(public_traces, name):
    path = critical_path(examine(read(public_traces / f"{name}.json.gz")).facts)
    assert sum(time for _, time in path.kinds) == path.length_ns
    assert path.residual_ns == 0
