"""How PyTorch's reduction kernel divides its work over threads and blocks, as Reduce.cuh does in torch 2.11.

A line of threads follows the dimension that is contiguous. Where that one is reduced, the threads of a line
work on one result together; where not, each has results of its own and walks through what is reduced. Where
few results have much to reduce, more lines of a block share them, then more blocks.
"""

import math
from dataclasses import dataclass
from typing import Final

from tracehunch.predict.ops.tensor import Tensor

_THREADS: Final = 512  # of a block, at most
_WARP: Final = 32
_WIDE: Final = 128  # elements from which on what is reduced in a row is read in vectors
_RESULTS: Final = 4  # results of a thread, at most
_LEAST: Final = 16  # elements for each thread, when work is divided
_MOST: Final = 256  # elements for each thread, from which on more blocks are set to a result
_THREADS_PER_SM: Final = 2048
_REPEATED: Final = 5
"""Loads of the same address, from the first-level cache, that take as long as one from the second: 128 rows
expanded to (128, 256) took 3.4 us on an H200, which is 32 of them, and 32 loads of memory 8.7."""
_BESIDES: Final = 8
"""Loads that keep a multiprocessor as busy as a thread does that starts, adds up with others and ends."""
_MEETING: Final = {True: 8, False: 18}
"""Loads one after the other that take as long as blocks take to write their parts, count each other in and
fence, by whether results are single: threads with four results write and read four parts."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A reduction as the kernel sees it.

    `along` tells whether neighbours in memory are reduced together. `vector` are the elements that a thread
    loads as one: of one result if `along`, else of as many results. `at_once` are those that it loads before
    it waits. `repeated` tells whether what is reduced is one element, expanded.
    """

    results: int
    each: int
    along: bool
    vector: int = 1
    at_once: int = 4
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Threads of a block as columns and rows, blocks side by side, blocks that share each result."""

    columns: int
    rows: int
    grid: int
    sharing: int
    elements: int
    """What each thread reduces of a result."""


def layout(one: Tensor, dims: tuple[int, ...], vector: int = 4, at_once: int = 4) -> Layout:
    """Return how dimensions of a tensor are reduced by a kernel that loads `vector` elements as one."""
    reduced, kept = (_merged(one, dims, reduced=of) for of in (True, False))
    each = math.prod(size for _, size in reduced)
    results = math.prod(size for _, size in kept)
    along = not kept or (bool(reduced) and reduced[0][0] < kept[0][0])
    if along:
        whole = len(reduced) == 1 and reduced[0][0] == 1 and each >= _WIDE
        return Layout(results, each, along, vector if whole else 1, at_once)
    repeated = bool(reduced) and all(stride == 0 for stride, _ in reduced)
    return Layout(results, each, along, _results_together(one, reduced, kept), at_once, repeated)


def _merged(one: Tensor, dims: tuple[int, ...], *, reduced: bool) -> list[tuple[int, int]]:
    """Return strides and sizes of some dimensions, the nearest in memory first, neighbours as one."""
    sizes = enumerate(zip(one.strides, one.shape, strict=True))
    merged: list[tuple[int, int]] = []
    for stride, size in sorted(both for dim, both in sizes if both[1] != 1 and (dim in dims) == reduced):
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0], merged[-1][1] * size)
        else:
            merged.append((stride, size))
    return merged


def _results_together(one: Tensor, reduced: list[tuple[int, int]], kept: list[tuple[int, int]]) -> int:
    """Return how many neighbouring results are loaded as one vector, which must be aligned everywhere."""
    if kept[0][0] != 1:
        return 1
    return math.gcd(_RESULTS, one.offset, kept[0][1], *(stride for stride, _ in (*reduced, *kept[1:])))


def plan(shape: Layout, sms: int) -> Plan:
    """Return how a reduction is divided on a GPU with some multiprocessors."""
    together = 1 if shape.along else shape.vector
    places = shape.results // together
    threads = _THREADS // together
    if shape.along:
        columns, rows = _block(shape.each // shape.vector, shape.results, threads)
    else:
        columns, rows = _block(places, shape.each, threads)
    step, beside = (columns, 1) if shape.along else (1, columns)
    split = _up(shape.each, step) >= min(rows * _LEAST, _MOST)
    step, beside = (step * rows, beside) if split else (step, beside * rows)
    elements, grid = _up(shape.each, step), _up(places, beside)
    room = sms * (_THREADS_PER_SM // (columns * rows))
    if not split or elements < _MOST or grid > room:
        return Plan(columns, rows, grid, 1, elements)
    sharing = max(min(_up(room, grid), _up(elements, _LEAST)), _up(elements, _MOST))
    return Plan(columns, rows, grid, sharing, _up(shape.each, step * sharing))


def rounds(shape: Layout, planned: Plan) -> int:
    """Return how often a thread loads and waits, until it has seen what it reduces."""
    together = shape.vector if shape.along and shape.vector > 1 else shape.at_once
    return _up(planned.elements, together * (_REPEATED if shape.repeated else 1))


def issued(shape: Layout, planned: Plan, sms: int) -> int:
    """Return how many loads all threads do, and what those do besides that no multiprocessor has room for."""
    threads = planned.columns * planned.rows * planned.grid * planned.sharing
    waiting = max(threads - sms * _THREADS_PER_SM, 0)
    return shape.results * shape.each // shape.vector + _BESIDES * waiting


def meeting(shape: Layout, planned: Plan) -> int:
    """Return how many loads it takes as long as to put together what blocks have of each result, 0 if one."""
    if planned.sharing == 1:
        return 0
    last = planned.rows * (planned.columns if shape.along else 1)
    return _MEETING[shape.along] + _up(planned.sharing, last)


def _block(width: int, height: int, threads: int) -> tuple[int, int]:
    """Return columns and rows of threads for a width and height of work."""
    wide, high = (_power(size) if size < threads else threads for size in (width, height))
    columns = min(wide, _WARP)
    rows = min(high, threads // columns)
    return min(wide, threads // rows), rows


def _power(size: int) -> int:
    """Return the largest power of two that is no more than a size."""
    return 1 << (max(size, 1).bit_length() - 1)


def _up(size: int, part: int) -> int:
    """Return how many parts hold a size."""
    return -(-size // part)
