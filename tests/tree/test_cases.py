"""What expected.json says of links."""

import json

import numpy as np
import pytest

from tracehunch.trace import read
from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.tree import NONE, Link, link


@pytest.fixture(scope="session")
def expected(cases):
    return json.loads((cases / "expected.json").read_text())


def tree_of(cases, name):
    return link(read(cases / name))


def notice(tree, code):
    return next(n for n in tree.notices if n.code == code)


@pytest.mark.parametrize("name", ["correlation_zero.json", "correlation_missing_three.json"])
def test_unlinked(cases, expected, name):
    tree = tree_of(cases, name)
    gpu = tree.trace.gpu.row
    lost = gpu[tree.link[gpu] == Link.UNLINKED]
    assert lost.size == expected[name]["facts"]["n_unlinked"]
    assert (tree.op[lost] != NONE).all()
    assert (tree.trace.external_id[tree.op[lost]] == tree.trace.external_id[lost]).all()
    assert notice(tree, "unlinked").lossy


def test_orphans_lie_inside_the_first_step_in_time_but_belong_to_none(cases, expected):
    facts = expected["orphans_real_naive.json"]["facts"]
    tree = tree_of(cases, "orphans_real_naive.json")
    trace, gpu = tree.trace, tree.trace.gpu.row
    lost = gpu[tree.link[gpu] == Link.OUTSIDE_WINDOW]
    step = next(s for s in tree.scopes if s.kind == "step").calls[0]
    inside = (trace.start_ns[lost] >= step.start_ns) & (trace.start_ns[lost] < step.end_ns)
    assert lost.size == facts["n_orphan_gpu_ops"]
    assert trace.dur_ns[lost].sum() == round(facts["orphan_sum_us"] * 1000)
    assert np.count_nonzero(inside) == facts["n_orphans_starting_inside_first_step"]
    assert not set(lost.tolist()) & set(step.gpu.tolist())


def test_external_ids_are_no_correlations(cases, expected):
    tree = tree_of(cases, "external_id_equals_correlation.json")
    trace = tree.trace
    found = {trace.name_of(row): trace.name_of(int(tree.op[row])) for row in trace.gpu.row.tolist()}
    assert found == expected["external_id_equals_correlation.json"]["facts"]["kernel_op"]


def test_repeated_id(cases):
    tree = tree_of(cases, "duplicate_correlation_one.json")
    gpu = tree.trace.gpu.row
    assert (tree.link[gpu] == Link.LINKED).all()
    assert np.unique(tree.launch[gpu]).size == gpu.size
    assert (tree.trace.external_id[gpu] == tree.trace.external_id[tree.op[gpu]]).all()
    assert notice(tree, "duplicate-correlation").message.startswith("1 correlation id shared by 2 launches")


def test_merged_processes(cases, expected):
    facts = expected["merged_processes_two_gpus.json"]["facts"]
    tree = tree_of(cases, "merged_processes_two_gpus.json")
    trace, gpu = tree.trace, tree.trace.gpu.row
    pids = [trace.processes[trace.process[row]] for row in tree.launch[gpu].tolist()]
    assert set(zip(trace.gpu.device.tolist(), pids, strict=True)) == {(0, "2331"), (1, "3332")}
    by_pid = {
        pid: int(np.count_nonzero(trace.process[tree.ops] == number))
        for number, pid in enumerate(trace.processes)
    }
    assert {pid: n for pid, n in by_pid.items() if n} == facts["cpu_ops_by_pid"]


def test_skew(cases, expected):
    facts = expected["clock_skew_const.json"]["facts"]
    tree = tree_of(cases, "clock_skew_const.json")
    trace, gpu = tree.trace, tree.trace.gpu.row
    ahead = trace.start_ns[tree.launch[gpu]] - trace.start_ns[gpu]
    assert np.count_nonzero(ahead > 0) == facts["n_kernels_before_launch"]
    assert ahead.max() == round(facts["max_skew_us"] * 1000)
    assert tree.skewed


def test_crossing(cases, expected):
    tree = tree_of(cases, "overlap_ops_one.json")
    assert tree.crossing.size == expected["overlap_ops_one.json"]["facts"]["n_crossing_pairs"]
    assert (tree.link[tree.trace.gpu.row] == Link.LINKED).all()


def test_threads_whose_ids_are_text_stay_two(cases, expected):
    tree = tree_of(cases, "thread_ids_strings.json")
    assert (
        np.unique(tree.trace.thread[tree.ops]).size
        == expected["thread_ids_strings.json"]["facts"]["n_op_threads"]
    )
    assert not tree.crossing.size


def test_whole_microseconds_do_not_cross(cases):
    tree = tree_of(cases, "integer_ts_old.json")
    gpu = tree.trace.gpu.row
    assert not tree.crossing.size
    assert not tree.skewed
    assert (tree.op[gpu] != NONE).all()


def test_steps_that_are_operators_are_no_ops(cases):
    tree = tree_of(cases, "old_style_op_steps.json")
    assert len(next(s for s in tree.scopes if s.kind == "step").calls) == 2
    assert not any(tree.trace.name_of(row).startswith("ProfilerStep") for row in tree.ops.tolist())


@pytest.mark.parametrize("name", ["cuda_graph_real.json", "cuda_graph_24.json"])
def test_graphs(cases, expected, name):
    facts = expected[name]["facts"]
    tree = tree_of(cases, name)
    sizes = {tree.gpu_of_launch(row).size for row in tree.launches.tolist()}
    assert tree.launches.size == facts["n_graph_launches"]
    assert sizes == {facts["kernels_per_graph_launch"]}


def test_cycles(cases, expected):
    facts = expected["two_cycles_gap5s.json"]["facts"]
    tree = tree_of(cases, "two_cycles_gap5s.json")
    ((start, end),) = tree.window.gaps
    assert abs((end - start) / 1000 - facts["gap_us"]) < 2
    steps = next(s for s in tree.scopes if s.kind == "step").calls
    assert np.mean([c.end_ns - c.start_ns for c in steps]) / 1000 == pytest.approx(facts["mean_step_us"])


def test_window_leaves_lost_stamps_out(cases, expected):
    tree = tree_of(cases, "ts_zero_two.json")
    assert (
        np.count_nonzero(tree.trace.start_ns == UNKNOWN_NS)
        == expected["ts_zero_two.json"]["facts"]["n_bad_ts"]
    )
    assert tree.window.recorded_ns == round(expected["ts_zero_two.json"]["facts"]["window_us"] * 1000)
    assert "clock-skew" not in {n.code for n in tree.notices}


def test_a_call_stack_of_100000_levels(cases, expected):
    tree = tree_of(cases, "deep_calls_same_end.json.gz")
    frames = tree.frames.around(int(tree.ops[0]))
    depth = len(frames) + 1
    assert depth == expected["deep_calls_same_end.json.gz"]["facts"]["max_depth"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("missing_kernels_first4.json", "launches-without-gpu"),
        ("steps_without_gpu_6_of_8.json", "steps-without-gpu"),
        ("launches_no_kernels_a.json", "gpu-not-recorded"),
        ("orphans_cut_two.json", "outside-window"),
        ("several_gpus_4.json", "several-devices"),
        ("no_step_6.json", "no-steps"),
        ("cpu_only_no_dev.json", "cpu-only"),
    ],
)
def test_what_must_be_said(cases, expected, name, code):
    found = notice(tree_of(cases, name), code)
    assert found.lossy == (
        expected[name]["exit_strict"] != 0 and "ok" not in expected[name].get("also_accept", [])
    )
    assert any(word.lower() in found.message.lower() for word in expected[name]["must_say"][0].split("|"))
