"""Copies: by direction, by kernels, in bytes and time; and what the allocator gave out."""

import numpy as np

from tracehunch.facts.activities import DIRECTIONS, MEMCPY
from tracehunch.facts.column import Bool, Column
from tracehunch.facts.context import Context
from tracehunch.facts.counts import gpu_count
from tracehunch.trace.model import UNKNOWN_NS, Int64

_GPU_MEMORY = 1  # device type of an allocator's instant


def columns(context: Context) -> list[Column]:
    """Return what there is of copies per call."""
    gpu = context.gpu
    memcpys = gpu.kind == MEMCPY
    kernels = gpu.of_uses(np.array([use.copies for use in gpu.uses], dtype=bool))
    direction = np.array([use.direction for use in gpu.uses], dtype=np.int64)
    return [
        gpu_count(context, "copies", memcpys),
        *(
            gpu_count(context, f"copies.{name}", gpu.of_uses(direction == code))
            for code, name in enumerate(DIRECTIONS)
        ),
        gpu_count(context, "copy_kernels", kernels),
        gpu_count(context, "any_copies", memcpys | kernels),
        *_traffic(context, memcpys),
        *_allocated(context),
    ]


def _traffic(context: Context, memcpys: Bool) -> list[Column]:
    """Time and bytes of memcpys; a bandwidth only where every copy of the call has both."""
    gpu, table, layout = context.gpu, context.trace.gpu, context.ownership.gpu
    time, own_time = layout.sums(np.where(memcpys, gpu.dur_ns, 0))
    complete = layout.sums(memcpys & (table.bytes < 0))[0] == 0
    moved, own_moved = layout.sums(np.where(memcpys & (table.bytes >= 0), table.bytes, 0))
    known = context.gpu_known & complete
    rate = np.rint(moved * 1e9 / np.maximum(time, 1)).astype(np.int64)
    return [
        Column("copy_time", time, own_time, context.gpu_known),
        Column("copy_bytes", moved, own_moved, known),
        Column("copy_bandwidth", rate, None, known & (time > 0)),
    ]


def _allocated(context: Context) -> list[Column]:
    """GPU memory given out by PyTorch's allocator during each call, by any thread."""
    memory, spans = context.trace.memory, context.ownership.spans
    gains = (memory.bytes > 0) & (memory.device_type == _GPU_MEMORY) & (memory.start_ns != UNKNOWN_NS)
    if not gains.any():
        return []
    order = np.argsort(memory.start_ns[gains], kind="stable")
    times, total = memory.start_ns[gains][order], np.concatenate([[0], np.cumsum(memory.bytes[gains][order])])
    inside: Int64 = (
        total[np.searchsorted(times, spans.end_ns)] - total[np.searchsorted(times, spans.start_ns)]
    )
    inside[context.is_whole] = total[-1]
    return [Column("allocated_bytes", inside)]
