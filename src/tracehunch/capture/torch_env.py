"""Which PyTorch there is, on which device, and how it is told when there is none."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal

from tracehunch.errors import CaptureError
from tracehunch.units import plural

OLDEST: Final = (2, 5)
"""The oldest PyTorch that is captured with: the first whose SDPA takes grouped heads and picks cuDNN."""

QUIET: Final = "6"
"""Kineto log level above all its messages; it would write its own stages to stderr."""


@dataclass(frozen=True, slots=True)
class Machine:
    """What code can be profiled on: the kind as PyTorch calls it, a name for people, the version of torch."""

    kind: Literal["cuda", "cpu"]
    name: str
    torch: str


def is_installed() -> bool:
    """Whether torch can be found; it is not loaded."""
    return find_spec("torch") is not None


def import_torch() -> Any:
    """Load torch.

    Raises:
        CaptureError: it is not installed, cannot be loaded, or is too old.

    """
    if not is_installed():
        raise CaptureError("PyTorch is not installed", "", 'pip install "tracehunch[torch]"')
    os.environ.setdefault("KINETO_LOG_LEVEL", QUIET)  # read when torch is loaded; a user's own setting stays
    try:
        import torch  # noqa: PLC0415  # an optional dependency, and slow to load
    except (ImportError, OSError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CaptureError("PyTorch cannot be loaded", why, "reinstall it") from error
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if found is not None and (int(found[1]), int(found[2])) < OLDEST:
        oldest = ".".join(str(part) for part in OLDEST)
        raise CaptureError(
            f"PyTorch {torch.__version__} is too old", f"{oldest} or newer is needed", "upgrade torch"
        )
    return torch


def pick_machine(wanted: str) -> Machine:
    """Find the machine for ``cuda``, ``cpu`` or ``auto`` (a GPU, else the CPU).

    Raises:
        CaptureError: PyTorch, or what was asked for, is not there.

    """
    torch = import_torch()
    if wanted == "cuda" or (wanted == "auto" and torch.cuda.is_available()):
        return _gpu(torch)
    threads = torch.get_num_threads()
    return Machine("cpu", f"CPU ({cpu_name()}, {plural(threads, 'thread')})", str(torch.__version__))


def versions(torch: Any) -> dict[str, str]:
    """List what a trace should say about the software it was recorded with; only what is there."""
    found = {
        "torch_version": torch.__version__,
        "torch_git_version": torch.version.git_version,
        "torch_cuda_version": torch.version.cuda,
        "torch_hip_version": torch.version.hip,
        "cudnn_version": torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None,
    }
    return {key: str(value) for key, value in found.items() if value}


def _gpu(torch: Any) -> Machine:
    """Find the current CUDA or ROCm device."""
    if not torch.cuda.is_available():
        build = torch.version.cuda or torch.version.hip
        why = (
            "no device, or a driver it cannot use"
            if build
            else f"torch {torch.__version__} is built without CUDA"
        )
        raise CaptureError("PyTorch sees no CUDA device", why, "use --device cpu, or --device recorded")
    return Machine("cuda", torch.cuda.get_device_name(), str(torch.__version__))


def cpu_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return " ".join(found[1].split()) if found else platform.processor() or platform.machine()
