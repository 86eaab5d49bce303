"""What a guess was made for: the hardware and the PyTorch version of the trace it comes from."""

from collections.abc import Mapping

import numpy as np

from tracehunch.trace.model import Device, Trace

HARDWARE: tuple[str, ...] = ("device", "compute_capability")
"""Entries of a context that must agree for times to carry over."""


def context_of(trace: Trace) -> dict[str, str]:
    """``device``, ``compute_capability`` and ``torch``, each absent where the trace does not say it."""
    devices = _used(trace)
    said = {
        "device": _joined([device.name for device in devices]),
        "compute_capability": _joined([device.compute_capability or "" for device in devices]),
        "torch": trace.header.torch or "",
    }
    return {name: value for name, value in said.items() if value}


def difference(context: Mapping[str, str], trace: Trace, name: str) -> tuple[str, str] | None:
    """Return what a context and a trace say of one entry where both say it and they differ."""
    expected, seen = context.get(name), context_of(trace).get(name)
    return (expected, seen) if expected and seen and expected != seen else None


def _used(trace: Trace) -> list[Device]:
    """Return the devices that ran something, or all where no activity names its own; [] without GPU work."""
    if not len(trace.gpu.row):
        return []
    ids = {int(number) for number in np.unique(trace.gpu.device)}
    return [device for device in trace.header.devices if device.id in ids] or list(trace.header.devices)


def _joined(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(name for name in names if name))
