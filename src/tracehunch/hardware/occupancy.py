"""How many blocks of a kernel fit on an SM, and what keeps more from fitting.

The rules are those of NVIDIA's occupancy calculator (cuda_occupancy.h of CUDA 12.8). PyTorch's profiler uses
it too, but does not tell it that a kernel opted in to more shared memory than the default limit, so every
kernel with more than 48 KiB is recorded with an occupancy of 0 %. Here such kernels get their real number.
"""

from dataclasses import dataclass
from typing import Final

from tracehunch.hardware.limits import SmLimits

_WARP: Final = 32  # threads of a warp
_UNBOUNDED: Final = 1 << 30  # blocks, where a kernel uses none of a resource

# The most shared memory in bytes that the profiler's own estimate can deal with.
MEASURABLE_SHARED_MEMORY: Final = 49_152


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident blocks of one kernel on one SM.

    `active_blocks` is what the SM's resources admit, before the grid is looked at; `limits` has the blocks
    that each resource would admit. `limited_by` names the tightest: "registers", "shared memory", "warps",
    "blocks", or "grid" when the launch has fewer blocks per SM than would fit. `percent` is the share of the
    SM's threads in use, the grid counted; `theoretical_percent` leaves the grid aside.
    """

    active_blocks: int
    limited_by: str
    limits: tuple[tuple[str, int], ...]
    percent: float
    theoretical_percent: float


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(
    *,
    threads_per_block: int,
    registers_per_thread: int,
    shared_memory_bytes: int,
    blocks_per_sm: float,
    sm: SmLimits,
) -> Occupancy:
    """Return how a kernel fills an SM.

    `shared_memory_bytes` is static and dynamic together, as traces record it. `blocks_per_sm` is the grid's
    size over the number of SMs, a ratio that traces record under that name.
    """
    if threads_per_block <= 0:
        raise ValueError(f"a block has at least one thread, not {threads_per_block}")
    warps = _round_up(threads_per_block, _WARP) // _WARP
    limits = {
        "registers": _register_blocks(warps, registers_per_thread, sm),
        "shared memory": _shared_memory_blocks(shared_memory_bytes, sm),
        "warps": sm.warps // warps,
        "blocks": sm.blocks,
    }
    limited_by = min(limits, key=lambda resource: limits[resource])
    active = limits[limited_by]
    percent_of_block = 100.0 * threads_per_block / sm.threads
    if 0 <= blocks_per_sm < active:
        limited_by = "grid"
    return Occupancy(
        active_blocks=active,
        limited_by=limited_by,
        limits=tuple(limits.items()),
        percent=max(0.0, min(float(active), blocks_per_sm)) * percent_of_block,
        theoretical_percent=active * percent_of_block,
    )


def _register_blocks(warps: int, registers_per_thread: int, sm: SmLimits) -> int:
    """Count blocks by registers; a warp's come from one partition of the register file, never from two."""
    if registers_per_thread <= 0:
        return _UNBOUNDED
    per_warp = _round_up(registers_per_thread * _WARP, sm.register_unit)
    resident_warps = sm.registers // sm.partitions // per_warp * sm.partitions
    return resident_warps // warps


def _shared_memory_blocks(shared_memory_bytes: int, sm: SmLimits) -> int:
    needed = _round_up(max(0, shared_memory_bytes) + sm.reserved_per_block, sm.shared_memory_unit)
    if needed == 0:
        return _UNBOUNDED
    return sm.shared_memory // needed
