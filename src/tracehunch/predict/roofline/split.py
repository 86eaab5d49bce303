"""Whether flash attention splits the keys of a call over several blocks, as its heuristic decides."""

import math
from typing import Final

from tracehunch.predict.roofline.dims import AttentionDims

STRIP: Final = 64
"""Queries of a block where keys may be split."""

_FULL_ENOUGH: Final = 0.8
"""Of the blocks that fit, so many strips need no split."""

_GOOD_ENOUGH: Final = 0.85
"""Of the best split's filling, what a smaller one may have."""

_MOST: Final = 128

_KEYS: Final = ((64, 256), (128, 128), (1 << 30, 64))
"""Head dimensions up to, and the keys of a tile. Source: names of flash_fwd_splitkv_kernel in traces."""


def split_keys(dims: AttentionDims) -> int:
    """Return the keys of a tile where keys may be split, by head dimension."""
    return next(keys for largest, keys in _KEYS if dims.head_dim <= largest)


def flash_splits(dims: AttentionDims, sms: int) -> int:
    """Return into how many parts the keys are cut; 1 is no split.

    Source: FlashAttention's `num_splits_heuristic`, as PyTorch calls it with two blocks to an SM.
    """
    tiles = -(-dims.keys // split_keys(dims))
    strips = dims.batch * dims.heads * -(-dims.queries // STRIP)
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
