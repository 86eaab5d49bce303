"""What a guess was made for: the hardware, the versions and the settings of the trace it comes from."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from tracehunch.trace.model import Device, Trace

HARDWARE: tuple[str, ...] = ("device", "compute_capability")
"""Entries of a context that must agree for times to carry over."""


VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "cuda": ("cuda_runtime", "cuda"),
    "hip": ("hip_runtime", "hip"),
    "driver": ("driver",),
    "cudnn": ("cudnn",),
    "triton": ("triton",),
    "nccl": ("nccl",),
}
"""Entry -> where an environment says it, the first that is there."""

SETTINGS: Final = ("flags", "variables")
"""Entries that hold several settings, as ``name=value`` joined by blanks."""

_NONE: Final = "none"  # recorded, and nothing was set


def context_of(trace: Trace) -> dict[str, str]:
    """``device``, ``compute_capability``, versions and settings; absent is what the trace does not say."""
    devices, environment = _used(trace), trace.header.environment
    said = {
        "device": _joined([device.name for device in devices]),
        "compute_capability": _joined([device.compute_capability or "" for device in devices]),
        "torch": trace.header.torch or "",
    }
    for name, places in VERSIONS.items():
        said[name] = next((environment.versions[one] for one in places if one in environment.versions), "")
    if environment.flags or environment.variables:
        said["flags"] = _settings(environment.flags)
        said["variables"] = _settings(environment.variables)
    return {name: value for name, value in said.items() if value}


def difference(context: Mapping[str, str], trace: Trace, name: str) -> tuple[str, str] | None:
    """Return what a context and a trace say of one entry where both say it and they differ."""
    expected, seen = context.get(name), context_of(trace).get(name)
    return (expected, seen) if expected and seen and expected != seen else None


def differences(context: Mapping[str, str], trace: Trace) -> Iterator[tuple[str, str, str]]:
    """Yield (what, expected, seen) for all in which a context and a trace differ, as far as both say it."""
    seen = context_of(trace)
    for name in ("device", "torch", *VERSIONS):
        if context.get(name) and seen.get(name) and context[name] != seen[name]:
            yield name, context[name], seen[name]
    for name in SETTINGS:
        if name in context and name in seen:
            before, after = _parsed(context[name]), _parsed(seen[name])
            for one in dict.fromkeys((*before, *after)):
                if before.get(one) != after.get(one):
                    yield one, before.get(one, "not set"), after.get(one, "not set")


def _settings(entries: Mapping[str, str]) -> str:
    return " ".join(f"{name}={'_'.join(value.split())}" for name, value in entries.items()) or _NONE


def _parsed(text: str) -> dict[str, str]:
    parts = (one.partition("=") for one in text.split() if "=" in one)
    return {name: value for name, _, value in parts}


def _used(trace: Trace) -> list[Device]:
    """Return the devices that ran something, or all where no activity names its own; [] without GPU work."""
    if not len(trace.gpu.row):
        return []
    ids = {int(number) for number in np.unique(trace.gpu.device)}
    return [device for device in trace.header.devices if device.id in ids] or list(trace.header.devices)


def _joined(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(name for name in names if name))
