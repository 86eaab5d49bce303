"""What one SM of a GPU holds at once: a table by compute capability, and the values in a trace's header."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

# deviceProperties' keys in a trace's header, and the fields of `SmLimits` that they give
_HEADER: Final = {
    "maxThreadsPerMultiprocessor": "threads",
    "regsPerMultiprocessor": "registers",
    "sharedMemPerMultiprocessor": "shared_memory",
}
_WARP: Final = 32  # threads of a warp, on every NVIDIA GPU


@dataclass(frozen=True, slots=True)
class SmLimits:
    """The resources of one SM, and the units in which they are given out.

    `threads`, `warps` and `blocks` are the most that are resident; `registers` counts 32-bit registers;
    `shared_memory`, `shared_memory_per_block` (the most one block may opt in to), `reserved_per_block` and
    `shared_memory_unit` are bytes.
    """

    compute_capability: str
    threads: int
    warps: int
    blocks: int
    registers: int
    shared_memory: int
    shared_memory_per_block: int
    reserved_per_block: int
    register_unit: int
    shared_memory_unit: int
    partitions: int
    source: str


@lru_cache(maxsize=1)
def _table() -> Mapping[str, SmLimits]:
    text = (files(__package__) / "limits.toml").read_text(encoding="utf-8")
    return {row["compute_capability"]: SmLimits(**row) for row in tomllib.loads(text)["sm"]}


def limits_of(compute_capability: str) -> SmLimits | None:
    """Return the limits of a compute capability such as "9.0", `None` where the table has none."""
    return _table().get(compute_capability)


def sm_limits(device_properties: Mapping[str, Any]) -> SmLimits | None:
    """Return the limits of the GPU that a trace's `deviceProperties` entry describes.

    The header's own numbers are used; what it does not hold (blocks per SM, allocation units) comes from the
    table. `None` where the header lacks the numbers, as in older traces and those of AMD GPUs, whose
    occupancy has other rules.
    """
    keys = (*_HEADER, "warpSize", "computeMajor", "computeMinor")
    values = {key: device_properties.get(key) for key in keys}
    numbers = {key: value for key, value in values.items() if isinstance(value, int) and value >= 0}
    if len(numbers) != len(values) or numbers["warpSize"] != _WARP:
        return None
    known = limits_of(f"{numbers['computeMajor']}.{numbers['computeMinor']}")
    if known is None or any(numbers[key] == 0 for key in _HEADER):
        return None
    return replace(
        known,
        threads=numbers["maxThreadsPerMultiprocessor"],
        warps=numbers["maxThreadsPerMultiprocessor"] // _WARP,
        registers=numbers["regsPerMultiprocessor"],
        shared_memory=numbers["sharedMemPerMultiprocessor"],
    )
