"""What a trace's calls ran on, as far as PyTorch's choices depend on it: the GPU, the process's settings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tracehunch.hardware import find_gpu
from tracehunch.kernels import vendor_hint
from tracehunch.predict.environment import Environment
from tracehunch.predict.releases import parse_version, releases
from tracehunch.trace.model import Cat
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.hardware import Gpu
    from tracehunch.predict.environment import Backend, Device
    from tracehunch.predict.traced.calls import Place
    from tracehunch.trace.model import Device as RecordedDevice
    from tracehunch.trace.model import Trace

_FLAGS: Final[Mapping[str, Backend]] = {
    "sdp_flash": "flash",
    "sdp_efficient": "efficient",
    "sdp_math": "math",
    "sdp_cudnn": "cudnn",
}
"""As a trace calls ``torch.backends.cuda.*_sdp_enabled()`` -> the backend."""

_APIS: Final[Mapping[str, Device]] = {"cuda": "cuda", "cuLaunch": "cuda", "hip": "rocm", "ur": "xpu"}
"""How the names of calls that launch begin -> the kind of device."""


def machine_of(
    trace: Trace, place: Place, device: int = NONE, gpu: Gpu | None = None
) -> tuple[Environment, str] | str:
    """Return the environment of calls that ran in one place, and the name of what they ran on.

    Its torch version is the newest one known, for others to replace. `device` is the GPU's number, NONE where
    that is not known; `gpu` takes the place of what the file says. Text says why it cannot be told.
    """
    plain = _with_settings(Environment(torch=list(releases())[-1]), trace)
    if place != "gpu":
        return replace(plain, device=place), "a CPU" if place == "cpu" else "an Apple GPU"
    if gpu is not None:
        kind: Device = "cuda" if gpu.vendor == "nvidia" else "rocm"
        return _with_gpu(plain, kind, gpu, None), f"{gpu.name} (as given)"
    devices = [one for one in trace.header.devices if device in (NONE, one.id)] or list(trace.header.devices)
    if not devices:
        return "the trace does not name its GPU: give --gpu"
    if len({(one.name, one.compute_capability) for one in devices}) > 1:
        return "the trace names several kinds of GPU: give --gpu"
    return _recorded(plain, trace, devices[0])


def _recorded(plain: Environment, trace: Trace, device: RecordedDevice) -> tuple[Environment, str] | str:
    kind = _kind(trace, device)
    if kind is None:
        return f"the trace does not show what kind of GPU {device.name} is: give --gpu"
    known = find_gpu(device.name, sms=device.sms, memory_bytes=device.memory_bytes)
    return _with_gpu(plain, kind, known, device), device.name


def _with_gpu(
    plain: Environment, kind: Device, gpu: Gpu | None, device: RecordedDevice | None
) -> Environment:
    """Put a GPU in; what the file says of its compute capability goes before the table."""
    made = replace(plain, device=kind, gpu=gpu)
    if kind == "rocm":
        return replace(made, architecture=None if gpu is None else gpu.compute_capability)
    if kind != "cuda":
        return made
    if device is not None and device.compute_major is not None:
        return replace(made, compute_capability=(device.compute_major, device.compute_minor or 0))
    return replace(made, compute_capability=None if gpu is None else parse_version(gpu.compute_capability))


def _with_settings(plain: Environment, trace: Trace) -> Environment:
    """Put in what the file says of environment variables and PyTorch's flags."""
    said = trace.header.environment
    return replace(
        plain,
        env=dict(said.variables),
        enabled={backend: False for flag, backend in _FLAGS.items() if said.flags.get(flag) == "False"},
        deterministic=said.flags.get("deterministic") == "True",
    )


def _kind(trace: Trace, device: RecordedDevice) -> Device | None:
    """Tell the kind of device by its name, the versions in the header, or the calls that launched."""
    vendor = vendor_hint(device.properties)
    if vendor:
        return "cuda" if vendor == ("nvidia",) else "rocm"
    versions = trace.header.environment.versions
    if "hip" in versions or "hip_runtime" in versions:
        return "rocm"
    if "cuda" in versions or "cuda_runtime" in versions:
        return "cuda"
    calls = {trace.names[at] for at in set(trace.name[trace.rows(Cat.RUNTIME, Cat.DRIVER)].tolist())}
    found = {kind for name in calls for start, kind in _APIS.items() if name.startswith(start)}
    return found.pop() if len(found) == 1 else None
