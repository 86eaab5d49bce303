"""Over how many blocks attention kernels split the keys of a call, as their heuristics decide."""

import math
from typing import Final

from tracehunch.predict.roofline.dims import AttentionDims

STRIP: Final = 64
"""Queries of a block where flash may split keys."""

_FULL_ENOUGH: Final = 0.8
"""Of the blocks that fit, so many strips need no split."""

_GOOD_ENOUGH: Final = 0.85
"""Of the best split's filling, what a smaller one may have."""

_MOST: Final = 128

_KEYS: Final = ((64, 256), (128, 128), (1 << 30, 64))
"""Head dimensions up to, and the keys of a tile. Source: names of flash_fwd_splitkv_kernel in traces."""

_ENOUGH_HEADS: Final = 256
_FEW_TILES: Final = 2
_MOST_ACCUMULATORS: Final = 200


def split_tile(dims: AttentionDims) -> int:
    """Return the keys of a tile of flash's kernel that splits them, by head dimension."""
    return next(keys for largest, keys in _KEYS if dims.head_dim <= largest)


def grouped(dims: AttentionDims) -> tuple[int, int]:
    """Return heads and queries as flash takes them: of one query, a group's heads as so many queries."""
    if dims.queries > 1 or dims.groups == 1:
        return dims.heads, dims.queries
    return dims.kv_heads, dims.groups


def flash_splits(dims: AttentionDims, sms: int) -> int:
    """Return into how many parts flash's forward cuts the keys; 1 is the ordinary kernel.

    Where batch x heads x query tiles leave SMs idle, the smallest number is taken that fills the waves nearly
    as well as the best one. Source: FlashAttention's `num_splits_heuristic`, as PyTorch calls it with two
    blocks to an SM.
    """
    heads, queries = grouped(dims)
    tiles = -(-dims.keys // split_tile(dims))
    strips = dims.batch * heads * -(-queries // STRIP)
    room = 2 * sms
    if strips >= _FULL_ENOUGH * room:
        return 1
    filled = {}
    for splits in range(1, min(_MOST, room, tiles) + 1):
        if splits == 1 or -(-tiles // splits) != -(-tiles // (splits - 1)):
            waves = strips * splits / room
            filled[splits] = waves / math.ceil(waves)
    best = max(filled.values())
    return next(splits for splits, share in filled.items() if share >= _GOOD_ENOUGH * best)


def efficient_splits(dims: AttentionDims, columns: int, *, accumulates: bool) -> int:
    """Return over how many blocks the efficient backward splits the keys, `columns` of them in a tile.

    One where batches and heads are enough and keys few. A kernel that accumulates (head dimensions above 128)
    keeps sums of the keys' gradients in memory for each split. Source: PyTorch's kernel_backward.h.
    """
    calls = dims.batch * dims.heads
    if calls >= _ENOUGH_HEADS and dims.keys <= _FEW_TILES * columns:
        return 1
    splits = -(-dims.keys // columns)
    return max(min(splits, _MOST_ACCUMULATORS // calls), 1) if accumulates else splits
