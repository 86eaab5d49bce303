"""Cases small enough to work out by hand: every number below was, before it was run."""

from __future__ import annotations

import pytest
from tests.compare.critical.made import ENGINE, Made, after, kinds

from tracehunch.errors import TracehunchError


def host_bound() -> Made:
    made = Made()
    made.step(1, 0, 220)
    made.op("aten::mm", 0, 100)
    made.launch(40, 60, "gemm", 65, 75)
    made.op("aten::add", 110, 200)
    made.launch(150, 160, "add", 166, 176)
    return made


def gpu_bound() -> Made:
    made = Made()
    made.step(1, 0, 320)
    for at in range(3):
        made.op("aten::mm", 10 * at, 10 * at + 10)
        made.launch(10 * at, 10 * at + 10, "gemm", 15 + 100 * at, 115 + 100 * at)
    made.call("cudaDeviceSynchronize", 30, 320)
    return made


def test_where_the_gpu_is_done_early_the_path_is_the_host():
    path = host_bound().path()
    assert kinds(path) == {"op": 160, "launch call": 30, "outside ops": 30}
    assert path.length_ns == 220_000


def test_what_if_of_the_host():
    found = after(host_bound().path())
    assert found["launch-calls"] == 190
    assert found["ops"] == 60
    assert found["outside"] == 190
    assert found["gpu"] == 220
    # both launched at 0: the first starts 5 later and runs 10, the second follows for 10
    assert found["host"] == 25


def test_where_the_host_waits_the_path_is_the_gpu():
    path = gpu_bound().path()
    assert kinds(path) == {"kernel": 300, "launch call": 10, "launch latency": 5, "wait call": 5}
    assert path.contributors[0].stretches == 3


def test_what_if_of_the_gpu():
    found = after(gpu_bound().path())
    assert (
        found["gpu"] == 40
    )  # the last launch returns at 30, its work comes 5 later, the wait returns 5 later
    assert found["kernels:aten::mm"] == 40
    assert found["launch-calls"] == 310
    # without its wait the host is done at 30, and the GPU at 315 as it was
    assert found["waits"] == 315


def test_an_event_that_another_stream_waits_for():
    made = Made()
    made.step(1, 0, 170)
    made.launch(0, 10, "first", 15, 115, stream=7)
    record = made.call("cudaEventRecord", 10, 12)
    wait = made.call("cudaStreamWaitEvent", 12, 14)
    made.sync(
        "Stream Wait Event",
        13,
        14,
        stream=20,
        correlation=wait,
        wait_on_stream=7,
        wait_on_cuda_event_record_corr_id=record,
    )
    made.launch(14, 20, "second", 118, 158, stream=20)
    made.call("cudaDeviceSynchronize", 20, 165)
    path = made.path()
    assert kinds(path) == {
        "kernel": 140,
        "launch call": 10,
        "wait call": 7,
        "launch latency": 5,
        "outside ops": 5,
        "device gap": 3,
    }
    assert not any("inferred" in note for note in path.notes)
    assert after(path)["gpu"] == 37  # 20 + 5, the wait 7, and 5 to the end


def test_without_what_was_recorded_about_events_they_are_inferred_and_it_is_said():
    made = Made()
    made.step(1, 0, 170)
    made.launch(0, 10, "first", 15, 115, stream=7)
    made.call("cudaEventRecord", 10, 12)
    made.call("cudaStreamWaitEvent", 12, 14)
    made.launch(14, 20, "second", 118, 158, stream=20)
    made.call("cudaDeviceSynchronize", 20, 165)
    path = made.path()
    assert kinds(path)["kernel"] == 140
    assert any("inferred" in note and "enable_cuda_sync_events" in note for note in path.notes)


def test_a_blocking_copy_waits_for_the_work_before_it():
    made = Made()
    made.step(1, 0, 200)
    made.launch(0, 10, "long", 15, 150)
    copy = made.call("cudaMemcpyAsync", 20, 180)
    made.gpu("Memcpy DtoH (Device -> Pageable)", 152, 170, of=copy, cat="gpu_memcpy")
    path = made.path()
    assert kinds(path) == {
        "kernel": 135,
        "outside ops": 20,
        "copy": 18,
        "launch call": 10,
        "wait call": 10,
        "launch latency": 5,
        "device gap": 2,
    }


def test_the_caller_of_the_backward_waits_for_autograds_thread():
    made = Made()
    made.step(1, 0, 250)
    made.op("aten::mm", 0, 50)
    made.op("autograd::engine::evaluate_function: MmBackward0", 80, 200, ENGINE)
    made.launch(100, 120, "gemm", 125, 130, tid=ENGINE)
    made.op("aten::add", 230, 240)
    path = made.path()
    # 50 and 10 of the caller, 100 of autograd; to it 30, back 30, and 10 at the end
    assert kinds(path) == {"op": 160, "outside ops": 70, "launch call": 20}
    assert after(path)["outside"] == 180
    assert after(path)["launch-calls"] == 230


def run_ahead() -> Made:
    """Three steps of 20 on the host, each with 100 of work; the last one waits."""
    made = Made()
    for at in range(3):
        begin = 20 * at
        made.step(at + 1, begin, 20 * at + 20 if at < 2 else 330)
        made.launch(begin, begin + 10, "work", 15 + 100 * at, 115 + 100 * at)
    made.call("cudaDeviceSynchronize", 60, 320)
    return made


def test_where_the_host_runs_ahead_a_step_is_its_share_of_the_gpu():
    path = run_ahead().path("ProfilerStep#2")
    assert kinds(path) == {"kernel": 100}
    assert (path.before_ns, path.host_ns, path.length_ns) == (95_000, 20_000, 100_000)


def test_such_a_step_on_an_infinitely_fast_gpu_is_its_share_of_the_host():
    assert after(run_ahead().path("ProfilerStep#2"))["gpu"] == 20


def test_steps_add_up_to_the_run():
    parts = [run_ahead().path(f"ProfilerStep#{number}") for number in (1, 2, 3)]
    assert sum(part.length_ns for part in parts) == 330_000
    assert [part.end_ns for part in parts[:-1]] == [part.start_ns for part in parts[1:]]


def test_one_launch_of_many_kernels():
    made = Made()
    made.step(1, 0, 100)
    graph = made.call("cudaGraphLaunch", 0, 10)
    for at in range(3):
        made.gpu("node", 15 + 25 * at, 35 + 25 * at, of=graph)
    made.call("cudaDeviceSynchronize", 10, 90)
    path = made.path()
    assert kinds(path) == {
        "kernel": 60,
        "device gap": 10,
        "launch call": 10,
        "outside ops": 10,
        "launch latency": 5,
        "wait call": 5,
    }


def test_work_of_unknown_launch_leaves_the_host_untold():
    made = Made()
    made.step(1, 0, 100)
    made.call("cudaLaunchKernel", 0, 10)
    for at in range(3):
        made.gpu("kernel", 15 + 25 * at, 35 + 25 * at, cat="kernel")
    path = made.path("whole")
    assert after(path)["launch-calls"] is None
    assert "launches" in next(one.why for one in path.what_ifs if one.after_ns is None)


def test_a_launch_long_before_its_work_with_nothing_between_is_not_explained():
    made = Made()
    made.step(1, 0, 1000)
    made.launch(0, 10, "soon", 15, 20)
    made.launch(30, 40, "late", 540, 550)
    made.call("cudaDeviceSynchronize", 50, 560)
    found = kinds(made.path())
    assert found["cannot tell"] == 480  # of 500, a launch may need 20
    assert found["launch latency"] == 20


def test_without_a_gpu_it_is_the_host_alone():
    made = Made()
    made.step(1, 0, 100)
    made.op("aten::mm", 10, 90)
    path = made.path()
    assert kinds(path) == {"op": 80, "outside ops": 20}
    assert "no GPU activity" in path.notes[0]
    assert "gpu" not in after(path)


def test_a_scope_that_is_not_there():
    with pytest.raises(TracehunchError, match="no scope"):
        host_bound().path("nowhere")


def test_a_trace_without_work():
    made = Made()
    made.events.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}})
    with pytest.raises(TracehunchError, match="no critical path"):
        made.path()
