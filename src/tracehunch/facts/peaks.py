"""The peaks of the data sheet that a kernel's work is held against."""

from typing import Final

from tracehunch.hardware import Gpu, find_gpu
from tracehunch.kernels import Identity
from tracehunch.trace.model import Trace

_MATRIX_UNITS: Final = frozenset({"tensor-core", "mfma"})
_GENERAL_UNITS: Final = frozenset({"cuda-core", "vector"})
_NARROW: Final = ("bf16", "fp16", "fp8")
_SINGLE: Final = "fp32"


def gpu_of(trace: Trace) -> Gpu | None:
    """Return the GPU of a trace; None where it has none, one that is not known, or several kinds."""
    used = set(trace.gpu.device.tolist())
    devices = [device for device in trace.header.devices if device.id in used] or trace.header.devices
    found = {find_gpu(device.name, sms=device.sms, memory_bytes=device.memory_bytes) for device in devices}
    return found.pop() if len(found) == 1 else None


def peak_flops(gpu: Gpu, identity: Identity, dtype: str) -> float | None:
    """Return the FLOP/s of the unit and number format that a kernel multiplies with.

    ``dtype`` is the short word of its operands' type. The kernel's name tells the unit, and of float32
    operands whether they are multiplied as TF32. None where the name does not tell, or the data sheet.
    """
    word = dtype.partition("-")[0]
    if identity.unit in _GENERAL_UNITS:
        return gpu.fp32_flops if word in (_SINGLE, "bf16", "fp16") else None
    if word in _NARROW:
        return gpu.matrix_peak(word)
    if identity.unit not in _MATRIX_UNITS or word != _SINGLE:
        return None
    if identity.dtype in _NARROW or identity.dtype == "tf32":
        return gpu.matrix_peak(identity.dtype)
    return gpu.matrix_peak("tf32") if identity.unit == "tensor-core" else None
