"""Other versions and vendors: old categories, ROCm, XPU, and what torch 2.13 adds."""

from __future__ import annotations

import pytest

from tracehunch.trace import Cat, read_bytes
from tracehunch.trace.kinds import kind_of
from tracehunch.trace.text import printable


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("Kernel", Cat.KERNEL),
        ("Operator", Cat.CPU_OP),
        ("Memcpy", Cat.MEMCPY),
        ("Memset", Cat.MEMSET),
        ("Runtime", Cat.RUNTIME),
        ("hip_runtime", Cat.RUNTIME),
        ("xpu_runtime", Cat.RUNTIME),
        ("mtia_runtime", Cat.RUNTIME),
        ("privateuse1_runtime", Cat.RUNTIME),
        ("cuda_driver", Cat.DRIVER),
        ("cuda_sync", Cat.SYNC),
        ("ac2g", Cat.OTHER),
        ("", Cat.OTHER),
        (None, Cat.OTHER),
    ],
)
def test_kinds(category, kind):
    assert kind_of(category) is kind


def test_old_traces(made):
    entries = [
        made.complete(cat="Operator", name="ProfilerStep#2"),
        made.complete(cat="Operator", args={"external id": 5}),
        {**made.kernel(1, 1, tid="stream 7"), "cat": "Kernel", "args": {"external id": 5, "device": 0}},
    ]
    trace = read_bytes(made.compact(entries), "x")
    assert trace.cat.tolist() == [Cat.USER_ANNOTATION, Cat.CPU_OP, Cat.KERNEL]
    assert trace.external_id.tolist() == [-1, 5, 5]
    assert trace.gpu.stream.tolist() == [7]


def test_kernels_without_a_stream_have_their_threads(made):
    bare = {**made.kernel(1, 1, pid=3, tid=64), "args": {"correlation": 1, "sycl queue": 64}}
    trace = read_bytes(made.compact([bare]), "x")
    assert (trace.gpu.device.tolist(), trace.gpu.stream.tolist()) == ([3], [64])


def test_rocm_writes_numbers_as_text(made):
    call = made.complete(cat="cuda_runtime", args={"correlation": 4, "stream": "0x0", "bytes": "16"})
    copy = {**made.kernel(1, 1), "cat": "gpu_memcpy", "args": {"stream": "0x10", "device": 0, "size": "64"}}
    trace = read_bytes(made.compact([call, copy]), "x")
    assert trace.correlation.tolist() == [4, -1]
    assert (trace.gpu.stream.tolist(), trace.gpu.bytes.tolist()) == ([16], [64])


def test_keys_of_torch_2_13_in_a_made_trace(made):
    occupancy = {"activeBlocksPerMultiprocessor": 2, "limitingFactors": "SMEM", "blockLimitRegs": 4}
    arguments = {"graph id": 3, "graph node id": 17, "occupancy": occupancy}
    trace = read_bytes(made.kineto([made.kernel(1.0, 1.0, args=arguments), made.kernel(3.0, 1.0)]), "x")
    assert trace.gpu.graph_id.tolist() == [3, -1]
    assert trace.gpu.graph_node_id.tolist() == [17, -1]
    assert trace.args_of(0)["occupancy"] == occupancy


def test_allocator_instants(made):
    instant = {
        "ph": "i",
        "s": "t",
        "name": "[memory]",
        "cat": "cpu_instant_event",
        "pid": 1,
        "tid": 1,
        "ts": 2.5,
    }
    instant["args"] = {"Bytes": -512, "Device Type": 1, "Device Id": 0}
    trace = read_bytes(made.compact([made.complete(), instant]), "x")
    memory = trace.memory
    assert (memory.event.tolist(), memory.start_ns.tolist()) == ([1], [2500])
    assert (memory.bytes.tolist(), memory.device_type.tolist()) == ([-512], [1])
    assert trace.header.recorded.memory
    assert len(trace) == 1


def test_threads_named_by_text_and_number_are_the_same_and_others_are_not(made):
    entries = [made.complete(tid=tid) for tid in (7, "7", 8, "eight", 7.0, None)]
    trace = read_bytes(made.compact(entries), "x")
    assert trace.thread.tolist() == [0, 0, 1, 2, 0, 3]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("line\nbreak", "line\\nbreak"),
        ("\u202eright to left", "\\u202eright to left"),
        ("\ud800", "\\ud800"),
        ("名前", "名前"),
        ("x" * 50, "x" * 17 + "..."),
    ],
)
def test_text_is_made_safe_to_print(text, shown):
    assert printable(text, 20) == shown
