"""What a trace says of the machine and the software that it was recorded on and with."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tracehunch.trace.model import Device, Environment

ENVIRONMENT_KEY: Final = "tracehunch_environment"
"""Top-level key under which ``tracehunch.capture`` writes it, grouped as ``Environment`` is."""

GROUPS: Final = ("versions", "machine", "flags", "variables")

_PLAIN: Final = {
    "torch_git_version": "torch_git",
    "torch_cuda_version": "cuda",
    "torch_hip_version": "hip",
    "triton_version": "triton",
    "roctracer_version": "roctracer",
}
"""Top-level keys that hold a version as text."""

_NUMBERED: Final = {
    "cuda_runtime_version": "cuda_runtime",
    "cuda_driver_version": "cuda_driver",
    "hip_runtime_version": "hip_runtime",
    "hip_driver_version": "hip_driver",
    "cudnn_version": "cudnn",
}
"""Top-level keys that hold a version as one number."""

_LONGEST: Final = 200  # characters of a value
_MOST: Final = 200  # entries of a group
_NAME: Final = re.compile(r"[\w.-]{1,100}")


def environment_of(keys: Mapping[str, Any], devices: Sequence[Device], torch: str | None) -> Environment:
    """Return what top-level keys and devices say; what tracehunch wrote at capture goes before the rest."""
    own = keys.get(ENVIRONMENT_KEY)
    groups = {name: dict(_entries(own, name)) for name in GROUPS}
    said = {} if torch is None else {"torch": torch}
    versions = {**said, **dict(_versions(keys)), **_texts(groups["versions"])}
    return Environment(
        versions=versions,
        machine={**dict(_devices(devices)), **groups["machine"]},
        flags=_texts(groups["flags"]),
        variables=_texts(groups["variables"]),
    )


def _entries(own: Any, group: str) -> Iterator[tuple[str, str | int | float]]:
    """Entries of a group that are what capture writes: plain names, short texts and numbers."""
    entries = own.get(group) if isinstance(own, Mapping) else None
    if not isinstance(entries, Mapping):
        return
    for name, value in list(entries.items())[:_MOST]:
        usable = isinstance(value, str) or (isinstance(value, int | float) and math.isfinite(value))
        if usable and _NAME.fullmatch(str(name)):
            yield str(name), value[:_LONGEST] if isinstance(value, str) else value


def _texts(entries: Mapping[str, str | int | float]) -> dict[str, str]:
    return {name: str(value) for name, value in entries.items()}


def _versions(keys: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, name in _PLAIN.items():
        if isinstance(text := keys.get(key), str) and text:
            yield name, text[:_LONGEST]
    for key, name in _NUMBERED.items():
        if name == "cudnn" and "torch_hip_version" in keys:
            continue  # there it is MIOpen's
        if version := _version(key, keys.get(key)):
            yield name, version
    distributed = keys.get("distributedInfo")
    if isinstance(distributed, Mapping) and isinstance(nccl := distributed.get("nccl_version"), str) and nccl:
        yield "nccl", nccl[:_LONGEST]


def _version(key: str, value: Any) -> str:
    """13000 -> 13.0 (CUDA), 60443483 -> 6.4.43483 (HIP), 91900 -> 9.19.0 and 8902 -> 8.9.2 (cuDNN)."""
    number = value if isinstance(value, int) else int(value) if _is_number(value) else 0
    if isinstance(value, bool) or number <= 0:
        return ""
    if key.startswith("cuda"):
        return f"{number // 1000}.{number % 1000 // 10}"
    if key.startswith("hip"):
        return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"
    per_major = 10_000 if number >= 90_000 else 1_000  # cuDNN 9 changed its scheme
    return f"{number // per_major}.{number % per_major // 100}.{number % 100}"


def _is_number(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}", value.strip()) is not None


def _devices(devices: Sequence[Device]) -> Iterator[tuple[str, str | int | float]]:
    """Yield what all devices of the header have in common."""
    if not devices:
        return
    yield "gpu", ", ".join(dict.fromkeys(device.name for device in devices))[:_LONGEST]
    for name, values in (
        ("sms", [device.sms for device in devices]),
        ("memory_bytes", [device.memory_bytes for device in devices]),
        ("compute_capability", [device.compute_capability for device in devices]),
    ):
        if len(set(values)) == 1 and values[0]:
            yield name, values[0]
