"""What a capture says of where it ran."""

import getpass
import gzip
import json
import platform
from pathlib import Path
from types import SimpleNamespace

import pytest

from tracehunch.capture import nvml
from tracehunch.capture.fingerprint import as_json, fingerprint
from tracehunch.trace import read
from tracehunch.trace.environment import ENVIRONMENT_KEY

torch = pytest.importorskip("torch")

from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402  # after importorskip

from tracehunch.capture.profiler import profile_calls  # noqa: E402  # after importorskip


@pytest.fixture
def captured(tmp_path):
    """A trace that was captured here, as the file holds it and as it is read."""

    def _captured(function=lambda: torch.ones(4)):
        path = profile_calls(function, tmp_path / "t.json.gz", label="l", steps=1)
        with gzip.open(path, "rt") as file:
            return file.read(), read(path)

    return _captured


def test_a_capture_says_versions_machine_flags_and_variables(captured, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    text, trace = captured()
    found = trace.header.environment
    assert trace.header.torch == found.versions["torch"] == torch.__version__
    assert found.machine["threads"] == torch.get_num_threads()
    assert found.machine["cpu"]
    assert found.flags["float32_matmul_precision"] == torch.get_float32_matmul_precision()
    assert found.flags["deterministic"] == "False"
    assert found.variables["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert json.loads(text)[ENVIRONMENT_KEY]["variables"]["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_a_backend_that_is_pinned_around_the_capture_shows(captured):
    with sdpa_kernel(SDPBackend.MATH):
        found = captured()[1].header.environment.flags
    assert (found["sdp_math"], found["sdp_flash"], found["sdp_efficient"]) == ("True", "False", "False")
    found = captured()[1].header.environment.flags
    assert found["sdp_flash"] == "True"


def test_it_tells_neither_who_nor_where(captured, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", "/home/carol/models")
    monkeypatch.setenv("TORCH_HUB_TOKEN", "s3cr3t")
    text, trace = captured()
    said = json.dumps(json.loads(text)[ENVIRONMENT_KEY])
    for private in ("carol", "s3cr3t", str(Path.home()), str(Path.cwd()), getpass.getuser() + "/", "/"):
        assert private not in said
    assert platform.node() not in trace.header.metadata.get("host_name", "")


def test_a_flag_that_this_pytorch_does_not_have_or_does_not_tell_is_absent():
    def refuses():
        raise RuntimeError("mix of the legacy and new APIs")

    backends = SimpleNamespace(
        cudnn=SimpleNamespace(is_available=lambda: False, allow_tf32=True),
        cuda=SimpleNamespace(flash_sdp_enabled=refuses, matmul=SimpleNamespace()),
    )
    bare = SimpleNamespace(
        __version__="2.5.0",
        version=SimpleNamespace(git_version=None, cuda=None, hip=None),
        backends=backends,
        get_num_threads=lambda: 2,
        get_float32_matmul_precision=lambda: "high",
    )
    found = fingerprint(bare, cuda=False)
    assert found["flags"] == {"cudnn_allow_tf32": "True", "float32_matmul_precision": "high"}
    assert found["versions"]["torch"] == "2.5.0"


def test_a_gpu_is_told_with_its_driver_and_clocks(monkeypatch):
    asked = []

    def driver_and_clocks(uuid):
        asked.append(uuid)
        return {"driver": "580.95.05"}, {"sm_clock_max_mhz": 1980, "power_limit_w": 700}

    monkeypatch.setattr("tracehunch.capture.fingerprint.driver_and_clocks", driver_and_clocks)
    properties = SimpleNamespace(
        name="NVIDIA H200", multi_processor_count=132, total_memory=7, major=9, minor=0, uuid="5f3c"
    )
    gpu = SimpleNamespace(
        __version__="2.11.0+cu130",
        version=SimpleNamespace(git_version="abc", cuda="13.0", hip=None),
        backends=SimpleNamespace(cudnn=SimpleNamespace(is_available=lambda: True, version=lambda: 91900)),
        cuda=SimpleNamespace(
            current_device=lambda: 0, device_count=lambda: 2, get_device_properties=lambda _: properties
        ),
    )
    found = fingerprint(gpu, cuda=True)
    assert asked == ["5f3c"]
    assert found["machine"] == {
        "gpu": "NVIDIA H200", "gpus": 2, "sms": 132, "memory_bytes": 7, "compute_capability": "9.0",
        "sm_clock_max_mhz": 1980, "power_limit_w": 700,
    }  # fmt: skip
    versions = found["versions"]
    assert (versions["driver"], versions["cudnn"], versions["cuda"]) == ("580.95.05", "9.19.0", "13.0")
    assert "5f3c" not in as_json(found)


def test_json_has_no_escapes_that_kineto_would_break():
    said = as_json({"machine": {"cpu": 'a "quoted" \\ name\n\x1b', "threads": 2}})
    assert "\\" not in said
    assert json.loads(said) == {"machine": {"cpu": "a ?quoted? ? name??", "threads": 2}}


def test_without_nvidia_s_library_nothing_is_told(monkeypatch):
    monkeypatch.setattr(nvml, "_LIBRARY", "libno-such-library.so.1")
    assert nvml.driver_and_clocks("") == ({}, {})


class Library:
    """NVIDIA's library as far as it is called."""

    def __init__(self, *, known=b"GPU-5f3c", lacks=()):
        self.known, self.lacks, self.calls = known, lacks, []

    def __getattr__(self, name):
        if name in self.lacks:
            raise AttributeError(name)
        self.calls.append(name)
        return {
            "nvmlInit_v2": lambda: 0,
            "nvmlShutdown": lambda: 0,
            "nvmlSystemGetDriverVersion": self._driver,
            "nvmlDeviceGetHandleByUUID": lambda uuid, _: 0 if uuid == self.known else 6,
            "nvmlDeviceGetApplicationsClock": lambda *_: 3,  # not supported
        }.get(name, self._number)

    @staticmethod
    def _driver(text, _):
        text.value = b"580.95.05"
        return 0

    @staticmethod
    def _number(*arguments):
        arguments[-1]._obj.value = 700_000 if len(arguments) == 2 else 1980
        return 0


def test_driver_clocks_and_power_are_read_from_nvidia_s_library(monkeypatch):
    library = Library()
    monkeypatch.setattr(nvml.ctypes, "CDLL", lambda _: library)
    driver, found = nvml.driver_and_clocks("5f3c")
    assert driver == {"driver": "580.95.05"}
    assert found["sm_clock_mhz"] == found["memory_clock_max_mhz"] == 1980
    assert found["power_limit_w"] == 700
    assert "sm_clock_application_mhz" not in found
    assert library.calls[-1] == "nvmlShutdown"
    assert nvml.driver_and_clocks("another") == (driver, {})


def test_an_old_library_that_lacks_a_function_is_no_failure(monkeypatch):
    library = Library(lacks=("nvmlDeviceGetClockInfo",))
    monkeypatch.setattr(nvml.ctypes, "CDLL", lambda _: library)
    assert nvml.driver_and_clocks("5f3c") == ({}, {})
    assert library.calls[-1] == "nvmlShutdown"
