"""Environments held against each other: what differs, what is unknown, whether times compare."""

import json

import pytest

from tracehunch.compare.environment import compare_environments
from tracehunch.trace import read_bytes
from tracehunch.trace.environment import ENVIRONMENT_KEY

GPU = {"id": 0, "name": "NVIDIA H200", "numSms": 132, "totalGlobalMem": 150109880320, "computeMajor": 9}
KERNEL = {
    "ph": "X",
    "cat": "kernel",
    "name": "k",
    "ts": 1,
    "dur": 1,
    "pid": 0,
    "tid": 7,
    "args": {"device": 0},
}
OP = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 1, "pid": 1, "tid": 1}
FLAGS = {"matmul_allow_tf32": "False", "sdp_flash": "True"}


def trace(events=(KERNEL,), device=GPU, own=None, **keys):
    """A trace of these events; ``own`` is what a capture of ours wrote, by group."""
    file = {"traceEvents": list(events), **keys}
    file |= {"deviceProperties": [device]} if device else {}
    file |= {ENVIRONMENT_KEY: own} if own else {}
    return read_bytes(json.dumps(file).encode(), "trace.json")


def full(**versions):
    said = {"torch": "2.11.0", "driver": "580.1", "cuda": "13.0", "cudnn": "9.19.0", **versions}
    return {"versions": said, "flags": FLAGS}


def names(entries):
    return [entry.name for entry in entries]


def test_the_same_environment_compares():
    found = compare_environments(trace(own=full()), trace(own=full()))
    assert found.times_compare
    assert not found.deciding + found.settings
    assert not found.unknown("unknown", "unknown before", "unknown after")
    assert {"GPU", "SMs", "driver", "cuDNN", "torch"} <= set(names(found.same))


@pytest.mark.parametrize(
    ("name", "shown"),
    [("torch", "torch"), ("driver", "driver"), ("cuda", "CUDA of torch"), ("cudnn", "cuDNN")],
)
def test_another_version_of_what_decides_keeps_times_from_comparing(name, shown):
    found = compare_environments(trace(own=full()), trace(own=full(**{name: "99.1"})))
    assert names(found.deciding) == [shown]
    assert not found.times_compare


def test_another_gpu_keeps_times_from_comparing():
    other = {**GPU, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}
    found = compare_environments(trace(), trace(device=other))
    assert names(found.deciding) == ["GPU", "SMs"]


def test_an_idle_gpu_of_another_kind_changes_nothing():
    file = trace(), trace(deviceProperties=[GPU, {**GPU, "id": 1, "name": "Tesla T4"}], device=None)
    assert "GPU" in names(compare_environments(*file).same)


def test_what_neither_says_is_unknown_and_so_is_what_one_says():
    found = compare_environments(trace(), trace())
    assert found.times_compare
    assert found.unknown("unknown") == ("driver", "CUDA", "cuDNN", "torch")
    found = compare_environments(trace(), trace(own=full()))
    assert found.unknown("unknown before") == ("driver", "CUDA", "cuDNN", "torch")
    assert found.unknown("unknown after") == ()
    found = compare_environments(trace(own=full()), trace())
    assert found.unknown("unknown after") == ("driver", "CUDA", "cuDNN", "torch")


def test_any_version_of_cuda_tells_which_it_is():
    keys = {"cuda_runtime_version": 13000, "cuda_driver_version": 13000}
    found = compare_environments(trace(**keys), trace(**keys))
    assert found.unknown("unknown") == ("driver", "cuDNN", "torch")
    found = compare_environments(trace(**keys), trace(**{**keys, "cuda_runtime_version": 12040}))
    assert [(one.name, one.before, one.after) for one in found.deciding] == [("CUDA runtime", "13.0", "12.4")]


def test_flags_and_variables_are_settings_and_absent_is_not_set():
    before = {**full(), "variables": {"CUDA_LAUNCH_BLOCKING": "1"}}
    after = {**full(), "flags": {**FLAGS, "sdp_flash": "False"}}
    found = compare_environments(trace(own=before), trace(own=after))
    assert [(one.name, one.before, one.after) for one in found.settings] == [
        ("sdp_flash", "True", "False"),
        ("CUDA_LAUNCH_BLOCKING", "1", "not set"),
    ]
    assert found.times_compare
    assert not compare_environments(trace(own=before), trace()).settings  # the other may have set it, too


def test_a_clock_may_move_a_little_and_its_limit_may_not():
    def at(clock, limit):
        return trace(own={**full(), "machine": {"sm_clock_mhz": clock, "power_limit_w": limit}})

    assert not compare_environments(at(1980, 700), at(1950, 700)).settings
    assert names(compare_environments(at(1980, 700), at(1410, 350)).settings) == ["power limit", "SM clock"]


def test_a_cpu_asks_for_the_cpu_alone():
    own = {"versions": {"torch": "2.13.0"}, "machine": {"cpu": "AMD EPYC"}}
    found = compare_environments(trace([OP], None, own), trace([OP], None, own))
    assert found.on_gpu == (False, False)
    assert found.unknown("unknown", "unknown before", "unknown after") == ()
    other = {**own, "machine": {"cpu": "Intel Xeon"}}
    assert names(compare_environments(trace([OP], None, own), trace([OP], None, other)).deciding) == ["CPU"]


def test_a_cpu_and_a_gpu_are_not_of_a_kind():
    found = compare_environments(trace([OP], None), trace())
    assert not found.same_kind
    assert not found.times_compare


def test_cuda_on_one_side_and_rocm_on_the_other_are_both_told():
    amd = {**GPU, "name": "AMD Instinct MI300X", "numSms": 304}
    found = compare_environments(
        trace(cuda_runtime_version=13000), trace(device=amd, hip_runtime_version=70000000)
    )
    asked = found.unknown("unknown", "unknown before", "unknown after")
    assert "CUDA" not in asked
    assert "GPU" in names(found.deciding)
