"""The environment of a trace in words: versions, clocks, and the settings that are not the usual ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.units import count, join, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.trace.model import Environment

VERSIONS: Final = {
    "torch": "torch",
    "cuda": "CUDA",
    "cuda_runtime": "CUDA runtime",
    "driver": "driver",
    "cuda_driver": "driver for CUDA",
    "hip": "ROCm",
    "hip_runtime": "HIP runtime",
    "hip_driver": "HIP driver",
    "cudnn": "cuDNN",
    "triton": "Triton",
    "nccl": "NCCL",
    "roctracer": "roctracer",
}
"""Version -> what people call it, in the order in which it is told."""

USUAL: Final = {
    "matmul_allow_tf32": "False",
    "cudnn_allow_tf32": "True",
    "float32_matmul_precision": "highest",
    "fp16_reduced_precision": "True",
    "bf16_reduced_precision": "True",
    "deterministic": "False",
    "cudnn_enabled": "True",
    "cudnn_benchmark": "False",
    "cudnn_deterministic": "False",
    "sdp_flash": "True",
    "sdp_efficient": "True",
    "sdp_math": "True",
    "sdp_cudnn": "True",
}
"""PyTorch's flags as they are where nobody changed them."""


def environment_lines(environment: Environment) -> list[tuple[str, str]]:
    """Label and text of what is worth a line; nothing where the trace does not say it."""
    lines = [("software", _software(environment)), ("settings", _settings(environment))]
    return [(label, text) for label, text in lines if text]


def _software(environment: Environment) -> str:
    """``CUDA 13.0, driver 580.95.05, cuDNN 9.19.0``; torch stands elsewhere in a report."""
    said = environment.versions
    hidden = {"torch"}
    hidden |= {"cuda_runtime"} if said.get("cuda") == said.get("cuda_runtime") else set()
    hidden |= {"cuda_driver"} if "driver" in said else set()
    hidden |= {"hip_driver"} if said.get("hip_driver") == said.get("hip_runtime") else set()
    parts = [
        f"{label} {printable(said[name], 60)}"
        for name, label in VERSIONS.items()
        if name in said and name not in hidden
    ]
    return ", ".join([*parts, *_clocks(environment.machine)])


def _clocks(machine: Mapping[str, str | int | float]) -> list[str]:
    clock, most, power = (machine.get(name) for name in ("sm_clock_mhz", "sm_clock_max_mhz", "power_limit_w"))
    parts = []
    if isinstance(clock, int | float):
        top = f" of {count(most)}" if isinstance(most, int | float) else ""
        parts.append(f"SM clock {count(clock)}{top} MHz")
    if isinstance(power, int | float):
        parts.append(f"power limit {count(power)} W")
    return parts


def _settings(environment: Environment) -> str:
    flags = [
        f"{name} {value}" for name, value in environment.flags.items() if USUAL.get(name, value) != value
    ]
    variables = [f"{name}={value}" for name, value in environment.variables.items()]
    return printable(join([*flags, *variables]))
