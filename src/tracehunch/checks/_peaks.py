"""Data-sheet peaks of the GPU that a trace was recorded on."""

from dataclasses import dataclass

from tracehunch.facts.model import Facts
from tracehunch.hardware import find_gpu


@dataclass(frozen=True, slots=True)
class Peaks:
    """FLOP/s of the matrix units in 16 bits and of the general units in float32; bytes/s of the memory."""

    half: float
    single: float
    bytes_per_second: float


def peaks_of(facts: Facts) -> Peaks | None:
    """Peaks of the trace's GPU; None where it has none, one that is not known, or several kinds."""
    devices = facts.tree.trace.header.devices
    found = {find_gpu(device.name, sms=device.sms, memory_bytes=device.memory_bytes) for device in devices}
    gpu = found.pop() if len(found) == 1 else None
    half = None if gpu is None else gpu.matrix_peak("fp16")
    if gpu is None or half is None:
        return None
    return Peaks(half, gpu.fp32_flops, gpu.bandwidth)
