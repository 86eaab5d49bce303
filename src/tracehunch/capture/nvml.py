"""Driver version, clocks and power limit from NVIDIA's management library, where the driver brings it.

The library is called as its C interface is documented (https://docs.nvidia.com/deploy/nvml-api); each of its
functions returns 0 for success. A machine without it, or a driver that refuses, leaves the values out.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Final

Value = str | int | float

_LIBRARY: Final = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
_SM, _MEMORY = 1, 2  # nvmlClockType_t
_TEXT_BYTES: Final = 96

_CLOCKS: Final = (
    ("sm_clock_mhz", "nvmlDeviceGetClockInfo", _SM),
    ("sm_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", _SM),
    ("sm_clock_application_mhz", "nvmlDeviceGetApplicationsClock", _SM),
    ("memory_clock_mhz", "nvmlDeviceGetClockInfo", _MEMORY),
    ("memory_clock_max_mhz", "nvmlDeviceGetMaxClockInfo", _MEMORY),
)
_POWER: Final = (
    ("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit"),
    ("power_limit_default_w", "nvmlDeviceGetPowerManagementDefaultLimit"),
)


def driver_and_clocks(uuid: str) -> tuple[dict[str, Value], dict[str, Value]]:
    """Return the driver's version, and clocks (MHz) and power limits (W) of a device; empty if unreadable.

    ``uuid`` as PyTorch gives it, with or without the driver's ``GPU-``; "" for the first device.
    """
    try:
        library = ctypes.CDLL(_LIBRARY)
        if library.nvmlInit_v2() != 0:
            return {}, {}
    except (AttributeError, OSError):  # no such library, or one of another age
        return {}, {}
    try:
        return _driver(library), _device(library, uuid)
    except AttributeError:  # it lacks a function
        return {}, {}
    finally:
        library.nvmlShutdown()


def _driver(library: ctypes.CDLL) -> dict[str, Value]:
    text = ctypes.create_string_buffer(_TEXT_BYTES)
    failed = library.nvmlSystemGetDriverVersion(text, ctypes.c_uint(_TEXT_BYTES))
    return {} if failed or not text.value else {"driver": text.value.decode("ascii", "replace")}


def _device(library: ctypes.CDLL, uuid: str) -> dict[str, Value]:
    device = ctypes.c_void_p()
    if uuid:
        name = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        failed = library.nvmlDeviceGetHandleByUUID(name.encode("ascii", "replace"), ctypes.byref(device))
    else:
        failed = library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(0), ctypes.byref(device))
    if failed:
        return {}
    number = ctypes.c_uint()
    found: dict[str, Value] = {}
    for name, function, clock in _CLOCKS:
        if getattr(library, function)(device, ctypes.c_int(clock), ctypes.byref(number)) == 0:
            found[name] = number.value
    for name, function in _POWER:
        if getattr(library, function)(device, ctypes.byref(number)) == 0:
            found[name] = number.value // 1000  # milliwatts
    return found
