"""What a trace should say of the machine and the software: versions, GPU, PyTorch's flags, variables.

Nothing in it tells who or where: of environment variables only settings are kept, no paths, names or secrets.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.nvml import driver_and_clocks
from tracehunch.capture.torch_env import cpu_name, versions
from tracehunch.capture.variables import settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value = str | int | float
Fingerprint = dict[str, dict[str, Value]]

_NAMES: Final = {
    "torch_version": "torch",
    "torch_git_version": "torch_git",
    "torch_cuda_version": "cuda",
    "torch_hip_version": "hip",
}
"""As ``versions`` calls what a trace calls by its top-level keys -> as a fingerprint does."""

_UNREADABLE: Final = (
    AssertionError,
    AttributeError,
    ImportError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What reading a setting raises where this PyTorch does not have it, or not with this build."""

_FLAGS: Final[Mapping[str, Callable[[Any], object]]] = {
    "matmul_allow_tf32": lambda torch: torch.backends.cuda.matmul.allow_tf32,
    "cudnn_allow_tf32": lambda torch: torch.backends.cudnn.allow_tf32,
    "float32_matmul_precision": lambda torch: torch.get_float32_matmul_precision(),
    "fp16_reduced_precision": lambda torch: torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
    "bf16_reduced_precision": lambda torch: torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction,
    "deterministic": lambda torch: torch.are_deterministic_algorithms_enabled(),
    "cudnn_enabled": lambda torch: torch.backends.cudnn.enabled,
    "cudnn_benchmark": lambda torch: torch.backends.cudnn.benchmark,
    "cudnn_deterministic": lambda torch: torch.backends.cudnn.deterministic,
    "sdp_flash": lambda torch: torch.backends.cuda.flash_sdp_enabled(),
    "sdp_efficient": lambda torch: torch.backends.cuda.mem_efficient_sdp_enabled(),
    "sdp_math": lambda torch: torch.backends.cuda.math_sdp_enabled(),
    "sdp_cudnn": lambda torch: torch.backends.cuda.cudnn_sdp_enabled(),
    "blas": lambda torch: _word(torch.backends.cuda.preferred_blas_library()),
}
"""Flag -> how it is read: as it is where the capture begins, so that a backend pinned around it shows."""


def fingerprint(torch: Any, *, cuda: bool) -> Fingerprint:
    """Describe where and with what this process runs; what cannot be read is absent.

    ``cuda``: the current CUDA or ROCm device is what will be profiled; without, the CPU is.
    """
    driver, clocks = driver_and_clocks(_uuid(torch)) if cuda and torch.version.cuda else ({}, {})
    machine = {**_gpu(torch), **clocks} if cuda else _cpu(torch)
    return {
        "versions": {**_versions(torch), **driver},
        "machine": machine,
        "flags": _flags(torch),
        "variables": dict(settings()),
    }


def as_json(found: Fingerprint) -> str:
    """Return a fingerprint as JSON without escapes: Kineto writes a slash for every backslash."""
    plain = {
        group: {name: _plain(value) if isinstance(value, str) else value for name, value in entries.items()}
        for group, entries in found.items()
    }
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _plain(text: str) -> str:
    return "".join(one if one.isprintable() and one not in '"\\' else "?" for one in text)


def _versions(torch: Any) -> dict[str, Value]:
    said = versions(torch)
    found: dict[str, Value] = {name: said[key] for key, name in _NAMES.items() if key in said}
    number = said.get("cudnn_version", "")
    if number.isdigit() and torch.version.cuda:  # on ROCm it is MIOpen's
        found["cudnn"] = _cudnn(int(number))
    for name, read in (("triton", _triton), ("nccl", _nccl)):
        if text := _read(partial(read, torch)):
            found[name] = str(text)
    return found


def _cudnn(number: int) -> str:
    per_major = 10_000 if number >= 90_000 else 1_000  # cuDNN 9 changed its scheme
    return f"{number // per_major}.{number % per_major // 100}.{number % 100}"


def _triton(_: Any) -> object:
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415  # slow to load, seldom used

    for package in ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-windows"):
        try:
            return version(package)
        except PackageNotFoundError:
            continue
    return None


def _nccl(torch: Any) -> object:
    """Return NCCL's version where this process has loaded and uses it."""
    used = torch.distributed.is_available() and torch.distributed.is_initialized()
    return ".".join(str(part) for part in torch.cuda.nccl.version()) if used and torch.version.cuda else None


def _gpu(torch: Any) -> dict[str, Value]:
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "gpu": str(properties.name),
        "gpus": int(torch.cuda.device_count()),
        "sms": int(properties.multi_processor_count),
        "memory_bytes": int(properties.total_memory),
        "compute_capability": f"{properties.major}.{properties.minor}",
    }


def _cpu(torch: Any) -> dict[str, Value]:
    return {"cpu": cpu_name(), "threads": int(torch.get_num_threads())}


def _uuid(torch: Any) -> str:
    """Return what the driver's library calls the current device; only to find it there, it is not kept."""
    return str(getattr(torch.cuda.get_device_properties(torch.cuda.current_device()), "uuid", ""))


def _flags(torch: Any) -> dict[str, Value]:
    found: dict[str, Value] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an older way of asking will go away
        for name, read in _FLAGS.items():
            value = _read(partial(read, torch))
            if value is not None:
                found[name] = str(value)
    return found


def _word(value: object) -> str:
    """``_BlasBackend.Cublas`` -> ``cublas``."""
    return str(value).rpartition(".")[2].lower()


def _read(read: Callable[[], object]) -> object | None:
    try:
        return read()
    except _UNREADABLE:
        return None
