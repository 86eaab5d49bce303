"""How long the blocks of a kernel take on a GPU's SMs: waves, tails, tiles of a causal mask."""

import math
from dataclasses import dataclass
from typing import Final

from tracehunch.predict.roofline.coefficients import Kernel

_SHARPNESS: Final = 4.0
"""Power of the mean that stands for "the longer of the two", without a corner."""

_CONTENTION: Final = 4.0
"""The same for a block that waits for itself, and for the others on its SM."""


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one launch: how many, and the tiles of an average one and of the longest."""

    count: int
    mean_tiles: float
    most_tiles: int


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast blocks run, see `makespan`."""

    block_us: float
    tile_us: float
    lone: float
    resident: int
    sms: int
    tail: float
    quantised: float


def tiled(calls: int, rows: int, columns: int, kernel: Kernel, *, causal: bool) -> Blocks:
    """Return the blocks that cut `calls` matrices of rows x columns into strips of the kernel's queries.

    A block walks over its strip, the kernel's keys at a time; under a causal mask from the top left it stops
    at the diagonal.
    """
    row_tile, column_tile = kernel.queries, kernel.keys
    strips, most = -(-rows // row_tile), -(-columns // column_tile)
    if not causal:
        return Blocks(strips * calls, most, most)
    # strip i needs ceil((i + 1) * row_tile / column_tile) tiles, at most all of them
    short = min(strips, most * column_tile // row_tile)
    total = _triangle(short, row_tile, column_tile) + (strips - short) * most
    last = min(most, -(-strips * row_tile // column_tile))
    return Blocks(strips * calls, total / strips, last)


def _triangle(strips: int, row_tile: int, column_tile: int) -> int:
    """Sum of ceil(i * row_tile / column_tile) for i from 1 to `strips`; one tile divides the other."""
    if row_tile >= column_tile:
        return strips * (strips + 1) // 2 * (row_tile // column_tile)
    period = column_tile // row_tile
    whole, rest = divmod(strips, period)
    return period * whole * (whole + 1) // 2 + rest * (whole + 1)


def larger(first: float, second: float, sharpness: float = _SHARPNESS) -> float:
    """Return the larger of two times, rounded where they are about the same."""
    low, high = min(first, second), max(first, second)
    return high if high <= 0 else high * (1 + (low / high) ** sharpness) ** (1 / sharpness)


def makespan(blocks: Blocks, pace: Pace) -> float:
    """Return the time in us from the first block to the end of the last.

    `tile_us` and `block_us` are what a tile and a block take of a full SM; a block alone on its SM takes
    `lone` times as long. Equal blocks run in waves, and `quantised` says how strictly; under a causal mask
    the long ones at the end leave SMs idle, `tail` of them.
    """
    mean = pace.block_us + blocks.mean_tiles * pace.tile_us
    longest = pace.block_us + blocks.most_tiles * pace.tile_us
    if blocks.mean_tiles == blocks.most_tiles:
        return _waves(blocks.count, longest, pace)
    lone, filled = pace.lone, blocks.count / pace.sms
    alone = _sharing(lone, 1)
    if filled <= 1:
        return longest * alone
    steady = _sharing(lone, pace.resident) / pace.resident
    together = min(pace.resident, math.ceil(filled))
    # where all blocks fit, the longest shares its SM with average ones
    others = (_sharing(lone, together) - alone) * mean if filled <= pace.resident else 0.0
    single = longest * alone + others
    return larger(single, filled * mean * max(steady, lone / together) + pace.tail * longest * lone)


def _sharing(lone: float, blocks: int) -> float:
    """How many times as long as its share of a full SM a block takes, with so many on its SM."""
    return larger(lone, blocks, _CONTENTION)


def _waves(count: int, block: float, pace: Pace) -> float:
    """Time of equal blocks, between strict waves and blocks that start whenever an SM has room."""
    full, alone = _sharing(pace.lone, pace.resident), _sharing(pace.lone, 1)
    waves, rest = divmod(count, pace.sms * pace.resident)
    last = _sharing(pace.lone, math.ceil(rest / pace.sms)) if rest else 0.0
    strict = waves * full + last
    if waves:
        steady = full / pace.resident
        loose = max(count / pace.sms * steady + (alone - steady) / 2, alone)
    else:
        loose = larger(pace.lone, count / pace.sms, _CONTENTION)
    return block * (pace.quantised * strict + (1 - pace.quantised) * loose)
