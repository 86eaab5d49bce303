"""What the file says about itself outside ``traceEvents``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tracehunch.trace.environment import environment_of
from tracehunch.trace.model import Device, Header, Recorded

_RANK = re.compile(r"(?:^|[^a-z])rank[-_=.: \[]{0,2}([0-9]{1,6})(?![0-9])", re.IGNORECASE)
_VERSION = re.compile(r"\d+\.\d+\S*")
_TORCH_KEYS = ("torchversion", "pytorchversion", "torch", "pytorch")
_DIGITS = re.compile(r"[0-9]{1,18}")
_INT64 = 2**63
_DEPTH = 4


def header_of(keys: Mapping[str, Any], label: str, seen: Recorded) -> Header:
    """Make the header from the top-level keys and from what the events show to have been recorded."""
    distributed = keys.get("distributedInfo")
    distributed = distributed if isinstance(distributed, Mapping) else {}
    rank_in_name = rank_of_name(label)
    rank = whole(distributed.get("rank"))
    rest = {k: v for k, v in keys.items() if k not in ("deviceProperties", "distributedInfo", "traceName")}
    name = keys.get("traceName")
    devices = tuple(_devices(keys.get("deviceProperties")))
    torch = next(_torch_versions(keys, _DEPTH), None)
    return Header(
        devices=devices,
        torch=torch,
        recorded=Recorded(
            shapes=_flag(keys, "record_shapes", seen.shapes),
            stacks=_flag(keys, "with_stack", seen.stacks),
            memory=_flag(keys, "profile_memory", seen.memory),
            modules=_flag(keys, "with_modules", seen.modules) or seen.modules,
        ),
        base_time_ns=whole(keys.get("baseTimeNanoseconds")) or 0,
        rank=rank_in_name if rank is None else rank,
        rank_in_name=rank_in_name,
        world_size=whole(distributed.get("world_size")),
        trace_name=name if isinstance(name, str) else None,
        environment=environment_of(keys, devices, torch),
        metadata={**rest, **({"distributedInfo": distributed} if distributed else {})},
    )


def rank_of_name(label: str) -> int | None:
    """Return the rank that a file's name states, such as ``run_rank3.json``."""
    match = _RANK.search(re.split(r"[/\\]", label)[-1])
    return int(match[1]) if match else None


def whole(value: Any) -> int | None:
    """Return a non-negative integer, also from its text; None otherwise."""
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _INT64 else None


def _devices(entries: Any) -> Iterator[Device]:
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        if not isinstance(entry, Mapping):
            continue
        number = whole(entry.get("id"))
        yield Device(
            id=index if number is None else number,
            name=str(entry.get("name") or "unknown"),
            compute_major=whole(entry.get("computeMajor")),
            compute_minor=whole(entry.get("computeMinor")),
            sms=whole(entry.get("numSms")),
            memory_bytes=whole(entry.get("totalGlobalMem")),
            properties=entry,
        )


def _flag(keys: Mapping[str, Any], key: str, otherwise: bool) -> bool:
    value = keys.get(key)
    return bool(value) if isinstance(value, bool | int | float) else otherwise


def _torch_versions(value: Any, depth: int) -> Iterator[str]:
    """Every version that stands under a key which names PyTorch, outermost first."""
    if not isinstance(value, Mapping) or depth == 0:
        return
    for key, inner in value.items():
        plain = re.sub(r"[^a-z]", "", str(key).lower())
        if plain in _TORCH_KEYS and isinstance(inner, str) and _VERSION.match(inner.strip()):
            yield inner.strip()
    for inner in value.values():
        yield from _torch_versions(inner, depth - 1)
