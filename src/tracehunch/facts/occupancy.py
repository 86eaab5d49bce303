"""Occupancy of each kernel, recomputed: the profiler's own estimate is 0 above 48 KiB of shared memory."""

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from tracehunch.hardware import SmLimits, limits_of, occupancy, sm_limits
from tracehunch.trace.model import ABSENT, Cat, Device, Float64, Int32, Int64, Trace
from tracehunch.tree.keys import numbered, packed

_BITS: Final = (14, 12, 12, 24)
"""Of device, threads a block, registers a thread, bytes of shared memory; more than any GPU has."""


def occupancies(trace: Trace) -> Float64:
    """Return percent of an SM's threads per GPU activity; nan for copies, and where nothing tells."""
    table = trace.gpu
    found = np.full(table.row.size, np.nan)
    limits = {device.id: _limits(device) for device in trace.header.devices}
    threads = _volumes(table.block)
    told = (trace.cat[table.row] == Cat.KERNEL) & (threads > 0)
    columns: tuple[Int32 | Int64, ...] = (
        table.device,
        threads,
        table.registers,
        table.shared_memory,
    )
    for column, bits in zip(columns, _BITS, strict=True):
        told &= (column >= 0) & (column < 1 << bits)
    rows = np.flatnonzero(told)
    if not rows.size or not any(limits.values()):
        return found
    blocks = _blocks_per_sm(trace, rows)
    _, code = np.unique(blocks, return_inverse=True)
    alike = numbered(packed(*(column[rows] for column in columns), code.reshape(-1)))
    first = alike.first
    distinct = zip(*(column[rows[first]].tolist() for column in columns), blocks[first].tolist(), strict=True)
    found[rows] = np.array([_percent(limits, values) for values in distinct])[alike.number]
    return found


def _volumes(sizes: Int64) -> Int64:
    """Return x * y * z; 0 where one is not recorded."""
    x, y, z = sizes.T
    told = (x != ABSENT) & (y != ABSENT) & (z != ABSENT)
    return np.where(told, x * y * z, 0)


def _limits(device: Device) -> SmLimits | None:
    """Return the header's own numbers; the table's where an NVIDIA header lacks them (before PyTorch 2.2)."""
    known = sm_limits(device.properties)
    if known is None and "nvidia" in device.name.lower() and device.compute_capability is not None:
        return limits_of(device.compute_capability)
    return known


def _blocks_per_sm(trace: Trace, rows: Int64) -> Float64:
    """As recorded, else the grid over the device's SMs; nan where neither is known."""
    table = trace.gpu
    sms = {device.id: device.sms for device in trace.header.devices if device.sms}
    devices = numbered(table.device[rows])
    sms_of = np.array([sms.get(device, 0) for device in devices.keys.tolist()], dtype=np.float64)
    per_device, grid = sms_of[devices.number], _volumes(table.grid[rows])
    from_grid = np.divide(
        grid, per_device, out=np.full(rows.size, np.nan), where=(per_device > 0) & (grid > 0)
    )
    return np.where(np.isnan(from_grid), table.blocks_per_sm[rows], from_grid)


def _percent(limits: Mapping[int, SmLimits | None], values: tuple[int, int, int, int, float]) -> float:
    device, threads, registers, memory, blocks = values
    sm = limits.get(device)
    if sm is None or math.isnan(blocks):
        return math.nan
    return occupancy(
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_memory_bytes=memory,
        blocks_per_sm=blocks,
        sm=sm,
    ).percent
