"""What a trace was recorded on and with, and how much of its GPU time hangs together with a launch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS, Cat, Device, Int64, Trace
from tracehunch.tree import Link, Tree

Vendor = Literal["nvidia", "amd", "intel", "unknown", "none"]
"""Whose GPU; "none" where the trace has no GPU activity and no device."""


@dataclass(frozen=True, slots=True)
class GpuShares:
    """GPU time (kernels, copies, memsets) by how it links to launches; sums of durations, microseconds."""

    total_us: float
    unattributed: int
    unattributed_us: float
    outside: int
    outside_us: float


def gpu_shares(tree: Tree) -> GpuShares:
    """GPU activities without a launch in the file (outside the window), and those not attributed."""
    rows = tree.trace.gpu.row
    durations = tree.trace.dur_ns[rows]
    durations = np.where(durations == UNKNOWN_NS, 0, durations)
    link = tree.link[rows]
    outside = link == Link.OUTSIDE_WINDOW
    lost = (link == Link.UNLINKED) | (link == Link.AMBIGUOUS)
    return GpuShares(
        total_us=_us(durations),
        unattributed=int(lost.sum()),
        unattributed_us=_us(durations[lost]),
        outside=int(outside.sum()),
        outside_us=_us(durations[outside]),
    )


def vendor(trace: Trace) -> Vendor:
    """Whose GPU the trace is of, by the names of the devices, else by the API that launched."""
    for device in trace.header.devices:
        found = _vendor_of(device.name)
        if found != "unknown":
            return found
    launches = {trace.names[at] for at in np.unique(trace.name[trace.rows(Cat.RUNTIME, Cat.DRIVER)])}
    if any(name.startswith("hip") for name in launches):
        return "amd"
    if any(name.startswith(("cuda", "cuLaunch", "cu")) for name in launches):
        return "nvidia"
    if any(name.startswith(("ur", "ze", "sycl")) for name in launches):
        return "intel"
    return "unknown" if len(trace.gpu.row) or trace.header.devices else "none"


def devices_used(trace: Trace) -> list[tuple[Device, int]]:
    """Return the devices that ran something, and how many there are of each kind; all of them if none did.

    A header lists every GPU of the machine, also those that this process never touched.
    """
    used = {int(device) for device in np.unique(trace.gpu.device)}
    devices = [device for device in trace.header.devices if device.id in used] or list(trace.header.devices)
    kinds = Counter((device.name, device.sms, device.memory_bytes) for device in devices)
    first = {(device.name, device.sms, device.memory_bytes): device for device in reversed(devices)}
    return [(first[kind], count) for kind, count in kinds.items()]


def n_devices_used(trace: Trace) -> int:
    """How many GPUs ran something in this trace."""
    return len(np.unique(trace.gpu.device))


def _vendor_of(name: str) -> Vendor:
    lower = name.lower()
    if any(word in lower for word in ("amd", "instinct", "radeon", "gfx")):
        return "amd"
    if any(word in lower for word in ("nvidia", "tesla", "geforce", "quadro", "rtx")):
        return "nvidia"
    return "intel" if "intel" in lower else "unknown"


def _us(durations_ns: Int64) -> float:
    return int(durations_ns.sum()) / 1000
