"""The environment that a header tells, whoever wrote it."""

import pytest

from tracehunch.trace import read
from tracehunch.trace.environment import ENVIRONMENT_KEY, environment_of
from tracehunch.trace.header import header_of
from tracehunch.trace.model import Environment, Recorded

SEEN = Recorded(shapes=False, stacks=False, memory=False, modules=False)


def environment(**keys):
    return header_of(keys, "x.json", SEEN).environment


@pytest.mark.parametrize(
    ("key", "value", "name", "version"),
    [
        ("cuda_runtime_version", 13000, "cuda_runtime", "13.0"),
        ("cuda_runtime_version", "12040", "cuda_runtime", "12.4"),
        ("cuda_driver_version", 12090, "cuda_driver", "12.9"),
        ("hip_runtime_version", 60443483, "hip_runtime", "6.4.43483"),
        ("cudnn_version", "91900", "cudnn", "9.19.0"),
        ("cudnn_version", 8902, "cudnn", "8.9.2"),
        ("torch_cuda_version", "12.8", "cuda", "12.8"),
        ("triton_version", "3.4.0", "triton", "3.4.0"),
    ],
)
def test_versions_of_top_level_keys(key, value, name, version):
    assert environment(**{key: value}).versions == {name: version}


def test_on_rocm_the_version_of_cudnn_is_another_library_s():
    found = environment(cudnn_version="3004000", torch_hip_version="6.4.43482")
    assert found.versions == {"hip": "6.4.43482"}


@pytest.mark.parametrize("odd", [None, True, -1, 0, 1.5, "x", [], {}])
def test_odd_versions_are_absent(odd):
    assert environment(cuda_runtime_version=odd, cudnn_version=odd) == Environment()


def test_what_our_capture_wrote_goes_first():
    own = {
        "versions": {"torch": "2.11.0", "driver": "580.1"},
        "machine": {"gpu": "NVIDIA H200", "sms": 132, "sm_clock_mhz": 1980},
        "flags": {"sdp_flash": "True"},
        "variables": {"CUDA_LAUNCH_BLOCKING": "1"},
    }
    found = environment(**{ENVIRONMENT_KEY: own}, torch_version="2.10", cuda_runtime_version=13000)
    assert found.versions == {"torch": "2.11.0", "cuda_runtime": "13.0", "driver": "580.1"}
    assert found.machine == own["machine"]
    assert (found.flags, found.variables) == (own["flags"], own["variables"])


@pytest.mark.parametrize(
    "own",
    [
        None,
        [],
        "x",
        {"versions": []},
        {"flags": {"a": None, "b": [1], "c\n": "x", "": "y"}},
        {"machine": {"x": float("nan")}},
    ],
)
def test_what_no_capture_of_ours_writes_is_left_out(own):
    assert environment(**{ENVIRONMENT_KEY: own}) == Environment()


def test_endless_values_and_groups_are_cut():
    own = {"variables": {f"V{n}": "x" * 10_000 for n in range(1000)}}
    found = environment(**{ENVIRONMENT_KEY: own}).variables
    assert len(found) == 200
    assert {len(value) for value in found.values()} == {200}


def test_devices_that_agree_tell_their_numbers_and_others_only_their_names():
    one = {"id": 0, "name": "NVIDIA H200", "numSms": 132, "totalGlobalMem": 7, "computeMajor": 9}
    assert environment(deviceProperties=[one, one]).machine == {
        "gpu": "NVIDIA H200", "sms": 132, "memory_bytes": 7, "compute_capability": "9.0",
    }  # fmt: skip
    other = {**one, "name": "Tesla T4", "numSms": 40}
    assert environment(deviceProperties=[one, other]).machine == {
        "gpu": "NVIDIA H200, Tesla T4", "memory_bytes": 7, "compute_capability": "9.0",
    }  # fmt: skip
    assert environment_of({}, (), None) == Environment()


def test_recorded_traces_say_what_their_headers_do(h200, cpu):
    found = read(h200 / "ranks/ddp/rank0.json.gz").header.environment
    assert found.versions == {"cuda_runtime": "13.0", "cuda_driver": "13.0", "nccl": "2.28.9"}
    assert found.machine["gpu"] == "NVIDIA H200"
    found = read(cpu / "naive.json.gz").header.environment
    assert found.versions["torch"] == "2.13.0+cpu"
    assert not found.machine
