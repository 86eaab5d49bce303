"""Data-sheet peaks of the GPU that a trace was recorded on."""

from dataclasses import dataclass

from tracehunch.checks._once import once
from tracehunch.facts.model import Facts
from tracehunch.facts.peaks import gpu_of as gpu_of_trace
from tracehunch.hardware import Gpu


@dataclass(frozen=True, slots=True)
class Peaks:
    """FLOP/s of the matrix units in 16 bits and of the general units in float32; bytes/s of the memory."""

    half: float
    single: float
    bytes_per_second: float


def peaks_of(facts: Facts) -> Peaks | None:
    """Peaks of the trace's GPU; None where it has none, one that is not known, or several kinds."""
    gpu = gpu_of(facts)
    half = None if gpu is None else gpu.matrix_peak("fp16")
    if gpu is None or half is None:
        return None
    return Peaks(half, gpu.fp32_flops, gpu.bandwidth)


@once
def gpu_of(facts: Facts) -> Gpu | None:
    """Return the GPU of the trace; None where it has none, one that is not known, or several kinds."""
    return gpu_of_trace(facts.tree.trace)
