"""How long the blocks of a kernel take on a GPU's SMs: waves, tails, tiles of a causal mask."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tracehunch.predict.roofline.coefficients import Kernel

_SHARPNESS: Final = 4.0
"""Power of the mean that stands for "the longer of the two", without a corner."""

_CONTENTION: Final = 4.0
"""The same for a block that waits for itself, and for the others on its SM, where it fills the SM alone."""


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


def tiled(calls: int, rows: int, columns: int, kernel: Kernel, *, causal: bool, offset: int = 0) -> Blocks:
    """Return the blocks that cut `calls` matrices of rows x columns into strips of the kernel's queries.

    A block walks over its strip, the kernel's keys at a time; under a causal mask it stops at the diagonal,
    which begins `offset` keys right of the top left (negative: queries below it).
    """
    row_tile, column_tile = kernel.queries, kernel.keys
    strips, most = -(-rows // row_tile), -(-columns // column_tile)
    if not causal:
        return Blocks(strips * calls, most, most)
    # strip i needs ceil(((i + 1) * row_tile + offset) / column_tile) tiles, none at least, all at most
    idle = min(strips, max(-offset, 0) // row_tile)
    short = min(strips, max((most * column_tile - offset) // row_tile, idle))
    first = (idle + 1) * row_tile + offset + column_tile - 1
    total = _floors(short - idle, column_tile, row_tile, first) + (strips - short) * most
    last = min(most, max(-(-(strips * row_tile + offset) // column_tile), 0))
    return Blocks(strips * calls, total / strips, last)


@lru_cache(maxsize=4_096)
def turned(calls: int, keys: int, queries: int, kernel: Kernel, *, causal: bool, offset: int = 0) -> Blocks:
    """Return the blocks of a backward: each takes a strip of keys and walks over the queries.

    Under a causal mask it starts at the diagonal, which begins `offset` keys right of the top left; keys that
    no query sees have no tile.
    """
    strips, most = -(-keys // kernel.keys), -(-queries // kernel.queries)
    if not causal:
        return Blocks(strips * calls, most, most)
    reach = max(queries + offset, 0)  # keys that some query sees
    busy = min(strips, -(-reach // kernel.keys))
    full = min(busy, offset // kernel.keys + 1) if offset >= 0 else 0  # strips that every query sees
    shortest = reach - (busy - 1) * kernel.keys
    part = _floors(busy - full, kernel.queries, kernel.keys, shortest + kernel.queries - 1)
    return Blocks(strips * calls, (full * most + part) / strips, min(most, -(-reach // kernel.queries)))


def _floors(count: int, divisor: int, step: int, first: int) -> int:
    """Sum of (i * step + first) // divisor for i from 0 to `count` - 1, by Euclid's algorithm."""
    if not count:
        return 0
    total = count * (count - 1) // 2 * (step // divisor) + count * (first // divisor)
    step, first = step % divisor, first % divisor
    whole, rest = divmod(step * count + first, divisor)
    return total + _floors(whole, step, divisor, rest) if step else total


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
    filled = blocks.count / pace.sms
    single = longest * _sharing(pace, 1)
    if filled <= 1:
        return single
    steady = _sharing(pace, pace.resident) / pace.resident
    together = min(pace.resident, math.ceil(filled))
    return larger(single, filled * mean * max(steady, pace.lone / together) + pace.tail * longest * pace.lone)


def _sharing(pace: Pace, blocks: int) -> float:
    """How many times as long as its share of a full SM a block takes, with so many on its SM.

    Between a block alone and a full SM it grows evenly.
    """
    lone, resident = pace.lone, pace.resident
    if resident == 1 or lone >= resident:
        return larger(lone, blocks, _CONTENTION)
    return lone + (resident - lone) * (blocks - 1) / (resident - 1)


def _waves(count: int, block: float, pace: Pace) -> float:
    """Time of equal blocks, between strict waves and blocks that start whenever an SM has room."""
    full, alone = _sharing(pace, pace.resident), _sharing(pace, 1)
    waves, rest = divmod(count, pace.sms * pace.resident)
    last = _sharing(pace, math.ceil(rest / pace.sms)) if rest else 0.0
    strict = waves * full + last
    if not waves:
        return block * strict
    steady = full / pace.resident
    loose = max(count / pace.sms * steady + (alone - steady) / 2, alone)
    return block * (pace.quantised * strict + (1 - pace.quantised) * loose)
