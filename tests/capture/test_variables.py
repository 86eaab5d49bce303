"""Environment variables: settings are kept, and nothing that is nobody's business."""

import getpass
import platform

import pytest

from tracehunch.capture.variables import NOT_KEPT, settings


def kept(**environ):
    return dict(settings(environ))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1"),
        ("CUDA_VISIBLE_DEVICES", "0,1"),
        ("CUDA_VISIBLE_DEVICES", ""),
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
        ("NVIDIA_TF32_OVERRIDE", "0"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True,max_split_size_mb:128"),
        ("TORCH_CUDNN_V8_API_LRU_CACHE_LIMIT", "10000"),
        ("TORCH_LOGS", "+dynamo,recompiles"),
        ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1"),
        ("NCCL_ALGO", "Ring,Tree"),
        ("NCCL_IB_HCA", "mlx5_0:1"),
        ("NCCL_BUFFSIZE", "8388608"),
        ("OMP_NUM_THREADS", "16"),
        ("TORCHINDUCTOR_MAX_AUTOTUNE", "1"),
    ],
)
def test_settings_are_kept(name, value):
    assert kept(**{name: value}) == {name: value}


@pytest.mark.parametrize(
    "name",
    [
        "PATH", "HOME", "USER", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "SLURM_JOB_ID",  # not of these families
        "TORCH_HUB_TOKEN", "PYTORCH_API_KEY", "NCCL_SECRET", "CUDA_PASSWORD", "TORCH_AUTH",
        "TORCH_HOME", "CUDA_HOME", "CUDA_PATH", "TORCHINDUCTOR_CACHE_DIR", "NCCL_TOPO_FILE", "TORCH_TRACE",
        "NCCL_HOSTID", "NCCL_COMM_ID", "NCCL_SOCKET_IFNAME", "TORCH_USER", "PYTORCH_JOB_NAME",
    ],
)  # fmt: skip
def test_secrets_people_hosts_and_places_are_not_even_named(name):
    assert kept(**{name: "1"}) == {}


@pytest.mark.parametrize(
    "value",
    [
        "/home/bob/kernels", "~/x", "C:\\Users\\bob", "bob@example.com", "https://example.com", "10.0.0.7",
        "node17.cluster.local", "ghp_a8f7s9d8f7a9s8df7", "AKIAIOSFODNN7EXAMPLE1", "a" * 200, "x\x1b[31m",
        "GPU-5f3c2a10-aaaa-bbbb-cccc-0123456789ab",
    ],
)  # fmt: skip
def test_of_values_that_are_no_settings_only_that_they_are_set_is_kept(value):
    assert kept(TORCH_SOMETHING=value) == {"TORCH_SOMETHING": NOT_KEPT}


def test_the_serial_number_of_a_gpu_is_not_kept():
    assert kept(CUDA_VISIBLE_DEVICES="GPU-5f3c2a10") == {"CUDA_VISIBLE_DEVICES": NOT_KEPT}


@pytest.mark.parametrize("name", [getpass.getuser(), platform.node(), "Carol"])
def test_this_user_and_this_machine_are_not_told(name):
    assert kept(TORCH_SOMETHING=name, LOGNAME="carol") == {"TORCH_SOMETHING": NOT_KEPT}


def test_this_process_s_own_variables_are_the_default(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    assert dict(settings())["CUDA_LAUNCH_BLOCKING"] == "1"
