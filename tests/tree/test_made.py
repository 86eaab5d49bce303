"""Linking of what real traces rarely have."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracehunch.tree import NONE, Link, link, source_line

SHAPES = [2, 5]


def names_of_ops(tree):
    """Name of each GPU row -> name of the op that launched it."""
    trace = tree.trace
    gpu = trace.gpu.row.tolist()
    return {
        trace.name_of(row): "" if tree.op[row] == NONE else trace.name_of(int(tree.op[row])) for row in gpu
    }


def codes(tree):
    return {notice.code: notice for notice in tree.notices}


def calls(tree, name):
    return next(s for s in tree.scopes if s.name == name).calls


def test_a_call_nested_in_one_of_its_name_is_part_of_it(events, trace_of):
    events.note("f", 0, 100).note("f", 10, 20).note("f", 200, 50)
    events.launch(12, 1).kernel(20, 1)
    tree = link(trace_of(events))
    assert [call.gpu.size for call in calls(tree, "f")] == [1, 0]


def test_the_same_annotation_on_two_threads_has_calls_on_both(events, trace_of):
    events.note("f", 0, 100, tid=1).note("f", 10, 50, tid=2)
    events.launch(12, 1, tid=2).kernel(20, 1)
    tree = link(trace_of(events))
    assert [call.gpu.size for call in calls(tree, "f")] == [0, 1]
    assert len({call.thread for call in calls(tree, "f")}) == 2


def test_work_of_an_unrelated_thread_is_nobodys(events, trace_of):
    events.note("f", 0, 100, tid=1).op("aten::mm", 10, 20, tid=2).launch(12, 1, tid=2).kernel(20, 1)
    tree = link(trace_of(events))
    assert [call.gpu.size for call in calls(tree, "f")] == [0]


def test_autograd_threads_serve_scopes_of_other_threads_only(events, trace_of):
    events.note("train", 0, 100, tid=1)
    events.op("autograd::engine::evaluate_function: MmBackward0", 10, 50, tid=2)
    events.note("hook", 12, 30, tid=2).launch(15, 1, tid=2).kernel(30, 1)
    events.op("autograd::engine::evaluate_function: AddB", 10, 50, tid=3).launch(16, 2, tid=3).kernel(40, 2)
    tree = link(trace_of(events))
    assert [call.gpu.size for call in calls(tree, "train")] == [2]
    assert [call.own_gpu.size for call in calls(tree, "train")] == [0]
    assert [call.gpu.size for call in calls(tree, "hook")] == [1]


def test_autograd_of_another_process_serves_nobody_here(events, trace_of):
    events.note("train", 0, 100, tid=1)
    events.op("autograd::engine::evaluate_function: MmBackward0", 10, 50, tid=2, pid=200)
    events.launch(15, 1, tid=2, pid=200).kernel(30, 1)
    assert [call.gpu.size for call in calls(link(trace_of(events)), "train")] == [0]


def test_backward_on_the_forward_thread_serves_others_only_inside_the_engine(events, trace_of):
    """The main thread runs the CPU part of the backward; others must not own its forward."""
    events.op("aten::mm", 0, 10, tid=1, **{"Sequence number": 1, "Fwd thread id": 0}).launch(
        2, 1, tid=1
    ).kernel(20, 1, name="forward")
    events.op(
        "autograd::engine::evaluate_function: MmBackward0",
        20,
        10,
        tid=1,
        **{"Sequence number": 1, "Fwd thread id": 1},
    )
    events.launch(22, 2, tid=1).kernel(40, 2, name="backward")
    events.note("main", 0, 50, tid=1).note("other", 0, 50, tid=2)
    tree = link(trace_of(events))
    assert [tree.trace.name_of(row) for row in calls(tree, "other")[0].gpu.tolist()] == ["backward"]
    assert calls(tree, "main")[0].own_gpu.size == 2


def test_crossing_ops_keep_their_launches_and_are_told(events, trace_of):
    events.op("aten::a", 0, 10).op("aten::b", 8, 10).launch(2, 1).kernel(20, 1, name="k1").launch(
        9, 2
    ).kernel(30, 2, name="k2")
    events.launch(15, 3).kernel(40, 3, name="k3")
    tree = link(trace_of(events))
    assert names_of_ops(tree) == {"k1": "aten::a", "k2": "aten::b", "k3": "aten::b"}
    assert codes(tree)["crossing-ops"].lossy


def test_annotations_that_cross_ops_are_no_damage(events, trace_of):
    events.op("aten::a", 0, 10).note("marker", 8, 10)
    assert "crossing-ops" not in codes(link(trace_of(events)))


def test_a_step_that_ends_inside_an_op_crosses_it(events, trace_of):
    events.note("ProfilerStep#1", 0.003, 10.004).op("aten::a", 5, 5.107)
    assert codes(link(trace_of(events)))["crossing-ops"].lossy


def test_rounded_stamps_do_not_cross(events, trace_of):
    """Whole microseconds: a child sticks out of its parent by less than one."""
    events.op("aten::a", 100, 10).op("aten::b", 104, 7).launch(105, 1, dur=2).kernel(120, 1)
    tree = link(trace_of(events))
    assert names_of_ops(tree) == {"k": "aten::b"}
    assert tree.trace.name_of(int(tree.parent[1])) == "aten::a"
    assert "crossing-ops" not in codes(tree)


def test_calls_that_launch_nothing_are_no_launches(events, trace_of):
    events.op("aten::a", 0, 20)
    events.launch(1, 1, name="cudaEventRecord").launch(3, 2, name="cudaStreamIsCapturing").launch(
        5, 3
    ).kernel(10, 3)
    tree = link(trace_of(events))
    assert tree.launches.size == 1
    assert "launches-without-gpu" not in codes(tree)


def test_a_call_of_unknown_name_is_a_launch_if_the_gpu_says_so(events, trace_of):
    events.op("aten::a", 0, 20).launch(1, 1, name="npuFancyEnqueue").kernel(10, 1)
    tree = link(trace_of(events))
    assert tree.launches.size == 1
    assert names_of_ops(tree) == {"k": "aten::a"}


def test_memsets_of_nothing_are_no_loss(events, trace_of):
    events.op("aten::a", 0, 20).launch(1, 1, name="cudaMemsetAsync").launch(5, 2).kernel(10, 2)
    assert not codes(link(trace_of(events)))["memsets-without-gpu"].lossy


def test_launches_during_a_capture_are_no_loss(events, trace_of):
    events.launch(0, 90, name="cudaStreamBeginCapture").op("aten::a", 2, 6).launch(3, 1)
    events.launch(10, 91, name="cudaStreamEndCapture").launch(20, 2).kernel(30, 2)
    tree = link(trace_of(events))
    assert tree.launches.size == 1
    assert "launches-without-gpu" not in codes(tree)


def test_the_capture_in_the_file_tells_the_ops_of_replays(events, trace_of):
    events.launch(0, 90, name="cudaStreamBeginCapture")
    events.op("aten::first", 2, 6).launch(3, 1).op("aten::second", 10, 6).launch(11, 2)
    events.launch(20, 91, name="cudaStreamEndCapture")
    for start, correlation in ((100, 7), (200, 8)):
        events.launch(start, correlation, name="cudaGraphLaunch")
        events.kernel(start + 20, correlation, name="b", **{"graph node id": 12, "graph id": 1})
        events.kernel(start + 10, correlation, name="a", **{"graph node id": 11, "graph id": 1})
    tree = link(trace_of(events))
    assert names_of_ops(tree) == {"a": "aten::first", "b": "aten::second"}
    assert "capture in the file" in codes(tree)["cuda-graph"].message


def test_a_capture_of_another_size_tells_nothing(events, trace_of):
    events.launch(0, 90, name="cudaStreamBeginCapture").op("aten::first", 2, 6).launch(3, 1)
    events.launch(20, 91, name="cudaStreamEndCapture").launch(100, 7, name="cudaGraphLaunch")
    events.kernel(110, 7, name="a").kernel(120, 7, name="b")
    assert names_of_ops(link(trace_of(events))) == {"a": "", "b": ""}


def test_repeated_ids_are_settled_by_external_id(events, trace_of):
    events.op("aten::a", 0, 10, **{"External id": 1}).launch(1, 5, **{"External id": 1})
    events.op("aten::b", 20, 10, **{"External id": 2}).launch(21, 5, **{"External id": 2})
    events.kernel(30, 5, name="kb", **{"External id": 2}).kernel(40, 5, name="ka", **{"External id": 1})
    tree = link(trace_of(events))
    assert names_of_ops(tree) == {"ka": "aten::a", "kb": "aten::b"}
    assert codes(tree)["duplicate-correlation"].lossy


def test_repeated_ids_are_settled_by_time(events, trace_of):
    events.op("aten::a", 0, 10).launch(1, 5).op("aten::b", 20, 10).launch(21, 5).kernel(
        5, 5, name="ka"
    ).kernel(40, 5, name="kb")
    assert names_of_ops(link(trace_of(events))) == {"ka": "aten::a", "kb": "aten::b"}


def test_repeated_ids_that_nothing_settles_stay_ambiguous(events, trace_of):
    events.op("aten::a", 0, 10).launch(1, 5).op("aten::b", 20, 10).launch(21, 5).kernel(40, 5)
    tree = link(trace_of(events))
    assert tree.link[tree.trace.gpu.row].tolist() == [Link.AMBIGUOUS]
    assert "ambiguous" in codes(tree)["duplicate-correlation"].message


def test_a_driver_call_inside_the_runtime_call_is_the_same_launch(events, trace_of):
    events.op("aten::a", 0, 20).launch(1, 5, dur=10).host(
        "cuda_driver", "cuLaunchKernel", 3, 5, correlation=5
    ).kernel(20, 5)
    tree = link(trace_of(events))
    assert tree.launches.size == 1
    assert tree.trace.name_of(int(tree.launch[tree.trace.gpu.row[0]])) == "cudaLaunchKernel"
    assert "duplicate-correlation" not in codes(tree)


@pytest.mark.parametrize("correlation", [0, -1, None])
def test_no_correlation_joins_nothing_but_external_id_names_the_op(events, trace_of, correlation):
    events.op("aten::a", 0, 10, **{"External id": 3}).launch(1, 0, **{"External id": 3}).op(
        "aten::b", 20, 10
    ).launch(22, 9).kernel(30, 9)
    events.kernel(40, correlation, name="lost", **{"External id": 3})
    tree = link(trace_of(events))
    lost = int(tree.trace.gpu.row[1])
    assert tree.launch[lost] == NONE
    assert tree.link[lost] == Link.UNLINKED
    assert names_of_ops(tree)["lost"] == "aten::a"
    assert codes(tree)["unlinked"].lossy


def test_external_ids_of_another_count_name_no_op(events, trace_of):
    """In traces of PyTorch 1.8 to 2.0 ops and GPU rows count in different ways."""
    events.op("aten::a", 0, 10, **{"External id": 1}).launch(1, 4, **{"External id": 501}).kernel(
        20, 4, **{"External id": 501}
    )
    events.op("aten::b", 30, 10, **{"External id": 502}).kernel(50, 0, name="lost", **{"External id": 502})
    assert names_of_ops(link(trace_of(events)))["lost"] == ""


def interleaved(events, device_of_second):
    """Two processes with the same ids, their rows mixed in the file, the second one 50 us later."""
    for start, number in ((0, 1), (200, 2)):
        for pid, later, device in ((1, 0, 0), (2, 50, device_of_second)):
            at = start + later
            events.op(f"aten::op{pid}", at, 20, pid=pid, tid=pid).launch(at + 1, number, pid=pid, tid=pid)
            events.kernel(at + 10, number, name=f"k{pid}", device=device)
    return sorted(events, key=lambda event: event["ts"])


def test_processes_whose_rows_are_mixed_are_told_apart_by_device(events, trace_of):
    tree = link(trace_of(interleaved(events, device_of_second=1)))
    assert names_of_ops(tree) == {"k1": "aten::op1", "k2": "aten::op2"}
    assert codes(tree)["several-processes"].lossy


def test_processes_that_nothing_tells_apart_are_not_joined(events, trace_of):
    tree = link(trace_of(interleaved(events, device_of_second=0)))
    links = tree.link[tree.trace.gpu.row]
    assert Link.AMBIGUOUS in links
    trace = tree.trace
    joined = [row for row in trace.gpu.row.tolist() if tree.launch[row] != NONE]
    assert all(trace.name_of(row)[1] == trace.name_of(int(tree.op[row]))[-1] for row in joined)


def test_clocks_that_disagree(events, trace_of):
    events.op("aten::a", 10.001, 20).launch(11.513, 1).kernel(11.263, 1)
    tree = link(trace_of(events))
    assert tree.skewed
    assert "0.250 us" in codes(tree)["clock-skew"].message


def test_a_server_that_waits_is_a_gap_and_a_jump_of_steps_is_one(events, trace_of):
    events.note("ProfilerStep#1", 0, 50).note("ProfilerStep#2", 60, 50).note("ProfilerStep#9", 5000, 50)
    tree = link(trace_of(events))
    assert tree.window.gaps == ((110_000, 5_000_000),)
    assert tree.window.recorded_ns == 160_000


def test_a_step_whose_row_is_lost_leaves_no_gap(events, trace_of):
    for number in (1, 2, 4, 5):
        events.note(f"ProfilerStep#{number}", 5_000 * number, 4_900)
    for start in range(5_000, 30_000, 500):
        events.op("aten::a", start + 50, 400)
    assert link(trace_of(events)).window.gaps == ()
    assert link(trace_of(events[:4])).window.gaps == ((14_900_000, 20_000_000),)


def test_a_short_break_between_steps_is_no_gap(events, trace_of):
    events.note("ProfilerStep#1", 0, 50).note("ProfilerStep#2", 60, 50).note("ProfilerStep#4", 170, 50)
    assert link(trace_of(events)).window.gaps == ()


def test_a_launch_without_a_correlation_is_one_that_nothing_joins(events, trace_of):
    events.op("aten::a", 0, 10).launch(2, 0).kernel(20, 0).launch(4, 7).kernel(30, 7).launch(6, -1)
    tree = link(trace_of(events))
    assert tree.launches.size == 3
    assert tree.launch[tree.trace.gpu.row].tolist() == [NONE, int(tree.launches[1])]
    assert "2 launches of 3" in codes(tree)["launches-without-gpu"].message


def test_steps_that_follow_each_other_have_no_gap(events, trace_of):
    events.note("ProfilerStep#1", 0, 50).note("ProfilerStep#2", 400, 50)
    assert link(trace_of(events)).window.gaps == ()


def test_source_is_the_innermost_frame_of_the_user(events, trace_of):
    frames = [
        ("train.py(3): <module>", 0, 100),
        ("model.py(7): forward", 10, 50),
        ("nn.Module: Linear_0", 11, 40),
        ("torch/nn/modules/linear.py(114): forward", 12, 30),
    ]
    for name, ts, dur in frames:
        events.host("python_function", name, ts, dur)
    events.op("aten::linear", 15, 10).launch(18, 1).kernel(30, 1).op("aten::mul", 70, 5)
    tree = link(trace_of(events))
    assert source_line(tree, int(tree.trace.gpu.row[0])) == "model.py(7): forward"
    assert source_line(tree, int(tree.ops[1])) == "train.py(3): <module>"


def test_source_of_a_backward_node_is_where_its_forward_was_called(events, trace_of):
    events.host("python_function", "train.py(3): <module>", 0, 200).host(
        "python_function", "model.py(7): forward", 10, 20
    )
    events.op("aten::mm", 15, 10, **{"Sequence number": 4, "Fwd thread id": 0})
    events.op(
        "autograd::engine::evaluate_function: MmBackward0",
        100,
        20,
        tid=9,
        **{"Sequence number": 4, "Fwd thread id": 1},
    )
    events.launch(105, 1, tid=9).kernel(120, 1)
    tree = link(trace_of(events))
    assert source_line(tree, int(tree.trace.gpu.row[0])) == "model.py(7): forward"


def test_without_stacks_there_is_no_source(events, trace_of):
    events.op("aten::mm", 15, 10)
    assert source_line(link(trace_of(events)), 0) == ""


EVENT = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.sampled_from(
            [
                "cpu_op",
                "user_annotation",
                "cuda_runtime",
                "cuda_driver",
                "kernel",
                "gpu_memcpy",
                "python_function",
                "overhead",
            ]
        ),
        "name": st.sampled_from(
            [
                "aten::mm",
                "cudaLaunchKernel",
                "cudaGraphLaunch",
                "ProfilerStep#1",
                "f",
                "autograd::engine::evaluate_function: X",
                "nn.Module: A_0",
                "cudaStreamBeginCapture",
            ]
        ),
        "pid": st.integers(0, 2),
        "tid": st.integers(0, 2),
        "ts": st.one_of(st.integers(0, 60), st.just("x")),
        "dur": st.one_of(st.integers(-1, 30), st.just(None)),
        "args": st.fixed_dictionaries(
            {},
            optional={
                "correlation": st.integers(-1, 6),
                "External id": st.integers(0, 4),
                "device": st.integers(0, 1),
                "Sequence number": st.integers(0, 3),
            },
        ),
    }
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(EVENT, max_size=25))
def test_any_events_link_and_nothing_is_counted_twice(trace_of, made):
    tree = link(
        trace_of(made or [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 0, "tid": 0, "ts": 0, "dur": 1}])
    )
    gpu = tree.trace.gpu.row
    linked = tree.link[gpu] == Link.LINKED
    assert (linked == (tree.launch[gpu] != NONE)).all()
    for scope in tree.scopes:
        rows = np.concatenate([call.gpu for call in scope.calls]) if len(scope.calls) else np.zeros(0)
        per_thread = (
            np.concatenate([call.own_gpu for call in scope.calls]) if len(scope.calls) else np.zeros(0)
        )
        assert np.unique(per_thread).size == per_thread.size
        assert set(rows.tolist()) <= set(gpu.tolist())


def test_external_ids_that_disagree_are_told_and_the_launch_counts(events, trace_of):
    events.op("aten::a", 0, 10, **{"External id": 1}).launch(1, 4, **{"External id": 1})
    events.op("aten::b", 20, 10, **{"External id": 2}).launch(21, 5, **{"External id": 2})
    events.op("aten::c", 40, 10, **{"External id": 3}).launch(41, 6, **{"External id": 3})
    events.kernel(15, 4, name="ka", **{"External id": 2}).kernel(35, 5, name="kb", **{"External id": 2})
    events.kernel(55, 6, name="kc", **{"External id": 3})
    tree = link(trace_of(events))
    assert names_of_ops(tree) == {"ka": "aten::a", "kb": "aten::b", "kc": "aten::c"}
    assert codes(tree)["external-id-mismatch"].message.startswith("1 GPU activity")
