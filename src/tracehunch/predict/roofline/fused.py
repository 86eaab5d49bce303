"""GPU time of the fused attention kernels: flash, efficient and cuDNN, forward and backward.

A block of threads takes a strip of queries (backward: of keys) of one head and walks over the keys, tile by
tile. The time of a tile on a full SM, next to that on an SM of its own, the cost of a block, and how the
blocks fill the SMs give the time; the bytes that must move, at the rate of a copy, are its floor.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tracehunch.predict.roofline.coefficients import Coefficients, Kernel
from tracehunch.predict.roofline.dims import AttentionDims, Case, element_bytes
from tracehunch.predict.roofline.machine import Machine
from tracehunch.predict.roofline.schedule import Blocks, Pace, larger, makespan, tiled, turned
from tracehunch.predict.roofline.split import STRIP, efficient_splits, flash_splits, split_tile
from tracehunch.predict.roofline.work import attention_work

_BANDWIDTH_SHARE: Final = 0.95
"""Of a copy's rate, what an attention kernel that waits for memory reaches. Source: cuDNN with one query."""

_ROW: Final = 4
"""Bytes of a float32, in which the backward sums up and the statistics of a row are kept."""

_HELPER_US: Final = 2.0
"""Launch and end of a small kernel beside the main one."""

_HELPER_SHARE: Final = 0.75
"""Of a copy's rate, what such a kernel reaches. Source: compute_dot_do_o and convert_dq of a trace."""

_PART_US: Final = 0.25
"""What the kernel that combines split keys takes for each part. Source: activities of traces."""

_BEYOND: Final = 0.7
"""Of a tile's time, what grows with head dimensions beyond the kernel's own. Source: efficient with 512."""

_NARROW: Final = 128
"""Largest head dimension of cuDNN's narrower kernel for one query."""

_CLASSES: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    ("flash", "forward"): ("32", "64", "96", "128", "192", "256"),
    ("flash", "backward"): ("32", "64", "96", "128", "192", "256"),
    ("efficient", "forward"): ("64", "128", "any"),
    ("efficient", "backward"): ("64", "128", "any"),
    ("efficient_fp32", "forward"): ("64", "128", "any"),
    ("efficient_fp32", "backward"): ("64", "128", "any"),
    ("cudnn", "forward"): ("64", "128", "192", "256"),
    ("cudnn", "backward"): ("64", "128", "192", "256"),
}


def kernel_name(case: Case) -> str | None:
    """Return the model's kernel for a call, `None` where the head dimension is larger than any takes."""
    dims = case.dims
    widest = max(dims.head_dim, dims.value_dim)
    if case.backend == "cudnn" and dims.queries == 1 and not case.backward:
        return f"cudnn-forward-decode-{128 if widest <= _NARROW else 256}"
    for size in _CLASSES[case.family, case.direction]:
        if size == "any" or widest <= int(size):
            return f"{case.family}-{case.direction}-{size}"
    return None


def fused_us(case: Case, machine: Machine, model: Coefficients) -> float | None:
    """Return the GPU time in us of all kernels of a call, `None` where none takes the head dimension."""
    name = kernel_name(case)
    if name is None:
        return None
    kernel = model.kernels[name]
    if case.backward:
        return _backward_us(case, kernel, machine, model)
    if case.backend == "flash":
        case = replace(case, dims=_grouped(case.dims))
        splits = flash_splits(case.dims, machine.sms)
        if splits > 1:
            return _split_us(case, kernel, machine, model, splits)
    return _forward_us(case, kernel, machine, model)


def _grouped(dims: AttentionDims) -> AttentionDims:
    """Flash with one query takes the query heads of a group as so many queries of one head."""
    if dims.queries > 1 or dims.groups == 1:
        return dims
    return replace(dims, heads=dims.kv_heads, queries=dims.groups)


def _forward_us(case: Case, kernel: Kernel, machine: Machine, model: Coefficients) -> float:
    dims = case.dims
    # a kernel for one query, as cuDNN has it, takes the heads of a group together
    calls = dims.batch * (dims.kv_heads if kernel.decodes else dims.heads)
    blocks = tiled(calls, dims.queries, dims.keys, kernel, causal=case.causal, offset=case.offset)
    return _launched(case, kernel, blocks, machine, model)


def _split_us(case: Case, kernel: Kernel, machine: Machine, model: Coefficients, splits: int) -> float:
    """Flash with its keys split over blocks, and the kernel that combines the parts."""
    dims = case.dims
    tiles = -(-dims.keys // split_tile(dims))
    strips = -(-dims.queries // STRIP) * dims.batch * dims.heads
    each = -(-tiles // splits)
    area = STRIP * split_tile(dims) / (kernel.queries * kernel.keys)
    main = _launched(case, kernel, Blocks(strips * splits, each, each), machine, model, area=area)
    # the parts and their statistics are float32, written by one kernel and read by the other
    parts = 2 * splits * _ROW * dims.out_elements
    return main + _HELPER_US + parts / (_HELPER_SHARE * machine.bandwidth) + splits * _PART_US


def _backward_us(case: Case, kernel: Kernel, machine: Machine, model: Coefficients) -> float:
    dims, calls = case.dims, case.dims.batch * case.dims.heads
    blocks = turned(calls, dims.keys, dims.queries, kernel, causal=case.causal, offset=case.offset)
    if case.backend == "efficient":
        splits = efficient_splits(dims, kernel.keys, accumulates=kernel.name.endswith("any"))
        # the parts of a gradient of q are added one after another, in the order of the keys
        seen = min(dims.keys, dims.queries) if case.causal and not case.lower_right else dims.keys
        links = min(splits, -(-seen // kernel.keys))
        chain = links + -(-dims.queries // kernel.queries) - 1 if links > 1 else 0
        return _launched(case, kernel, _joined(blocks, calls * splits), machine, model, chain=chain)
    main = _launched(case, kernel, blocks, machine, model)
    rows, e = calls * dims.queries, element_bytes(case.dtype)
    # rows' dot products of output and gradient before, the float32 gradient of q converted after
    moved = 2 * e * dims.out_elements + 2 * _ROW * rows + (_ROW + e) * dims.q_elements
    if case.backend == "cudnn" and dims.groups > 1:
        moved += 2 * e * (dims.k_elements + dims.v_elements) * dims.groups
    return main + 2 * _HELPER_US + moved / (_HELPER_SHARE * machine.bandwidth)


def _joined(blocks: Blocks, count: int) -> Blocks:
    """Return the same tiles in fewer blocks, each of which takes several strips in turn."""
    if blocks.count <= count:
        return blocks
    times = blocks.count / count
    return Blocks(count, blocks.mean_tiles * times, math.ceil(blocks.mean_tiles * times))


def _launched(
    case: Case,
    kernel: Kernel,
    blocks: Blocks,
    machine: Machine,
    model: Coefficients,
    *,
    area: float = 1.0,
    chain: int = 0,
) -> float:
    """Time of one kernel: launch, and the longest of its blocks', its bytes' and its chain's.

    `area` scales its tile; `chain` is how many tiles wait for one another.
    """
    cost, common = model.costs[kernel.name], model.backends[f"{case.family}-{case.direction}"]
    slower = _slower(kernel, machine)
    grown = _head_dim_factor(kernel, cost.head_dim_share, case.dims)
    more = 1 + common.mask_share * (case.mask_bytes > 0) + common.dropout_share * case.dropout
    more += common.ragged_share * case.mask_ragged
    tile_us = area * cost.tile_us * grown * more * slower
    computing = makespan(
        blocks,
        Pace(
            block_us=cost.block_us * slower,
            tile_us=tile_us,
            lone=cost.lone,
            resident=kernel.resident,
            sms=machine.sms,
            tail=common.tail,
            quantised=common.quantised,
        ),
    )
    computing = larger(computing, chain * cost.link * tile_us * cost.lone)
    moving = (_seen_bytes(case) + case.mask_bytes) / (_BANDWIDTH_SHARE * machine.bandwidth)
    return common.launch_us + larger(computing, moving)


def _seen_bytes(case: Case) -> int:
    """Least bytes of a call; a causal mask hides the keys beyond the last query, which no forward reads."""
    dims = case.dims
    if case.causal and not (case.backward or case.lower_right) and dims.keys > dims.queries:
        dims = replace(dims, keys=dims.queries)
    return attention_work(dims, case.dtype, causal=False, backward=case.backward).least_bytes


def _head_dim_factor(kernel: Kernel, share: float, dims: AttentionDims) -> float:
    """How long a tile takes next to one of the kernel's own head dimension; only `any` kernels go beyond."""
    if kernel.decodes:
        return (dims.head_dim + dims.value_dim) / (2 * kernel.head_dim)
    size = (dims.head_dim + dims.value_dim) / (2 * kernel.head_dim)
    return 1 + (share if size <= 1 else _BEYOND) * (size - 1)


def _slower(kernel: Kernel, machine: Machine) -> float:
    """How many times as long an SM takes as the reference's: half softmax, half product for older units."""
    if machine.reference:
        return 1 / machine.clock
    if kernel.units == "own":
        return 1 / machine.tensor
    return 0.5 / machine.clock + 0.5 / machine.legacy_tensor
