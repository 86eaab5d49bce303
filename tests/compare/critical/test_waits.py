"""What calls wait for: each number below was worked out by hand."""

from __future__ import annotations

from pathlib import Path

from tests.compare.critical.made import Made, after, kinds

from tracehunch.compare.critical import critical_path
from tracehunch.judge import examine
from tracehunch.trace import read

DATA = Path(__file__).parents[2] / "data"
HOLDS = 1000  # launches that a queue holds


def full_queue(launches: int, steps: int = 1) -> Made:
    """Launches of 2 us for kernels of 20 us; when the queue is full each waits for the start of a kernel."""
    made, now, number = Made(), 0.0, 0
    for step in range(steps):
        first = now
        for _ in range(launches):
            begun = now
            started = 10 + 20 * (number - HOLDS + 1)
            now = max(begun + 2, started + 1 if number >= HOLDS else 0)
            made.launch(begun, now, "kernel", 10 + 20 * number, 30 + 20 * number)
            number += 1
        made.step(step + 1, first, now)
    return made


def test_launches_into_a_full_queue_wait_for_the_gpu():
    path = full_queue(1200).path()
    assert kinds(path) == {"kernel": 24_000, "launch latency": 8, "launch call": 2}


def test_on_an_infinitely_fast_gpu_such_a_launch_takes_what_others_take():
    # 1,200 launches of 2, and 8 until the last kernel; the first one that waits does so for only 9 us
    assert after(full_queue(1200).path())["gpu"] == 2417
    # each step of 900
    found = after(full_queue(900, steps=3).path("ProfilerStep#2"))["gpu"]
    assert found is not None
    assert abs(found - 1800) < 20


def test_a_full_queue_is_no_wait_that_the_program_could_leave_out():
    assert "waits" not in after(full_queue(1200).path())


def test_a_cuda_graph_is_one_launch_of_the_queue():
    made = Made()
    made.step(1, 0, 2300)
    for begun, started in ((0, 20), (10, 1020)):
        graph = made.call("cudaGraphLaunch", begun, begun + 10)
        for at in range(1000):
            made.gpu("node", started + at, started + at + 0.9, of=graph)
    # it takes 30 us, and waits for nothing
    made.launch(30, 60, "last", 2025, 2030)
    made.op("aten::x", 60, 2300)
    assert kinds(made.path())["launch call"] == 50


def test_cuda_free_waits_for_the_device():
    made = Made()
    made.step(1, 0, 200)
    made.launch(0, 10, "long", 15, 150)
    made.call("cudaFree", 12, 155)
    made.op("aten::x", 155, 200)
    path = made.path()
    assert kinds(path) == {
        "kernel": 135,
        "op": 45,
        "launch call": 10,
        "launch latency": 5,
        "runtime call": 5,
    }
    assert after(path)["gpu"] == 65  # 15 until the kernel is over, the call's own 5, and 45


def test_cuda_free_when_the_gpu_is_idle_takes_its_own_time():
    made = Made()
    made.step(1, 0, 200)
    made.launch(0, 10, "short", 15, 20)
    made.call("cudaFree", 30, 155)
    assert kinds(made.path()) == {"runtime call": 125, "outside ops": 65, "launch call": 10}


def test_a_freed_block_of_a_stream_ordered_allocator_waits_for_nothing():
    made = Made()
    made.step(1, 0, 200)
    made.launch(0, 10, "long", 15, 150)
    made.call("cudaFreeAsync", 10, 12)
    made.op("aten::x", 12, 200)
    assert kinds(made.path()) == {"op": 188, "launch call": 10, "runtime call": 2}


def test_a_call_that_waits_for_a_stream_other_than_the_last_one_launched_to():
    made = Made()
    made.step(1, 0, 300)
    made.launch(0, 10, "awaited", 15, 200, stream=20)
    made.launch(10, 20, "short", 25, 30, stream=7)
    made.call("cudaStreamSynchronize", 20, 203)
    made.op("aten::x", 203, 300)
    path = made.path()
    assert kinds(path) == {"kernel": 185, "op": 97, "launch call": 10, "launch latency": 5, "wait call": 3}
    assert after(path)["gpu"] == 120  # the call begins at 20 and costs 3, then 97


def test_cuda_device_synchronize_waits_for_the_last_of_all_streams():
    made = Made()
    made.step(1, 0, 300)
    for at, (name, ended) in enumerate((("a", 250), ("b", 100), ("c", 260))):
        made.launch(10 * at, 10 * at + 10, name, 10 * at + 15, ended, stream=7 + at)
    made.call("cudaDeviceSynchronize", 30, 265)
    made.op("aten::x", 265, 300)
    path = made.path()
    assert kinds(path) == {"kernel": 225, "op": 35, "launch call": 30, "launch latency": 5, "wait call": 5}
    assert path.contributors[0].name == "c"


def test_two_gpus_and_a_copy_between_them():
    made = Made()
    made.step(1, 0, 300)
    made.gpu("first", 15, 115, of=made.call("cudaLaunchKernel", 0, 10))
    copy = made.call("cudaMemcpyPeerAsync", 10, 20)
    made.gpu("Memcpy PtoP (Device -> Device)", 117, 157, of=copy, cat="gpu_memcpy")
    made.call("cudaEventRecord", 20, 21)
    made.call("cudaStreamWaitEvent", 21, 22)
    made.gpu("second", 160, 260, of=made.call("cudaLaunchKernel", 22, 30), device=1)
    made.call("cudaStreamSynchronize", 31, 270)
    made.op("aten::x", 270, 300)
    path = made.path()
    assert kinds(path) == {
        "kernel": 200,
        "copy": 40,
        "op": 30,
        "launch call": 10,
        "wait call": 10,
        "device gap": 5,
        "launch latency": 5,
    }
    assert after(path)["copies"] == 260


def test_gpus_that_do_not_wait_for_each_other():
    made = Made()
    made.step(1, 0, 400)
    made.gpu("first", 15, 115, of=made.call("cudaLaunchKernel", 0, 10))
    made.gpu("second", 25, 325, of=made.call("cudaLaunchKernel", 10, 20), device=1)
    made.call("cudaDeviceSynchronize", 20, 120)
    made.call("cudaDeviceSynchronize", 120, 330)
    made.op("aten::x", 330, 400)
    path = made.path()
    assert kinds(path) == {"kernel": 300, "op": 70, "launch call": 20, "launch latency": 5, "wait call": 5}


def test_a_copy_from_pageable_memory_holds_its_call_up_until_shortly_before_its_end():
    made = Made()
    made.step(1, 0, 2500)
    copy = made.call("cudaMemcpyAsync", 100, 2080)
    made.gpu("Memcpy HtoD (Pageable -> Device)", 200, 2100, of=copy, cat="gpu_memcpy", bytes=16 << 20)
    made.call("cudaStreamSynchronize", 2082, 2105)
    made.op("aten::x", 2105, 2500)
    path = made.path()
    assert kinds(path)["copy"] == 1900
    # staged at once: 100, the call, what the second one costs, and the op
    found = after(path)["copies"]
    assert found is not None
    assert 495 <= found < 530


def test_what_copies_from_pageable_memory_cost_is_what_steps_without_them_save():
    found = examine(read(DATA / "h200/faults/h2d_pageable.json.gz"))
    path = critical_path(found.facts, "ProfilerStep#4")
    (copies,) = (one for one in path.what_ifs if one.id == "copies")
    without = critical_path(examine(read(DATA / "h200/faults/clean.json.gz")).facts, "ProfilerStep#4")
    assert copies.after_ns is not None
    assert abs(copies.after_ns - without.length_ns) < 0.15 * without.length_ns
    assert path.length_ns > 2 * without.length_ns
