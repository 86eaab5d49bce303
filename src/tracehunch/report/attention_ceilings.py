"""The peaks that were measured before the series, beside the data sheet's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.hardware import find_gpu
from tracehunch.units import bandwidth, flop_rate, share

if TYPE_CHECKING:
    from tracehunch.attention.outcome import Device
    from tracehunch.predict.roofline import Calibration
    from tracehunch.report.json_report import Object


def ceilings_text(calibration: Calibration | None, device: Device) -> str:
    """Say what was measured on a device, and what part of the data sheet that is; "" if nothing was."""
    if calibration is None or device.recorded:
        return ""
    gpu = find_gpu(device.name)
    parts = []
    if calibration.copy_bytes_per_s is not None:
        of_sheet = "" if gpu is None else _of(calibration.copy_bytes_per_s, gpu.bandwidth)
        parts.append(f"a copy {bandwidth(calibration.copy_bytes_per_s)}{of_sheet}")
    for dtype, flops in calibration.matmul_flops.items():
        peak = None if gpu is None else gpu.fp32_flops if dtype == "fp32" else gpu.matrix_peak(dtype)
        parts.append(f"a {dtype} product {flop_rate(flops)}{'' if peak is None else _of(flops, peak)}")
    if not parts:
        return ""
    used = "; the guesses of time rest on them" if gpu is not None else ""
    return f"Ceilings measured here: {', '.join(parts)}{used}."


def ceilings_object(calibration: Calibration) -> Object:
    """Describe the measured peaks for JSON: bytes/s, and FLOP/s by data type."""
    known = {"copy_bandwidth": calibration.copy_bytes_per_s, "matmul_flops": dict(calibration.matmul_flops)}
    return {key: value for key, value in known.items() if value}


def _of(measured: float, sheet: float) -> str:
    return f" ({share(measured, sheet)} of the data sheet)"
