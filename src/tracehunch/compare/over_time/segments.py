"""Where a noisy series changes its level: the best cut into a few stretches, by dynamic programming.

Optimal partitioning by least squares (Fisher 1958; Jackson et al. 2005) of logarithms after a running
median, so that single slow calls count for nothing and steps keep their place. Which of the cuts are
changes, tests decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.trace.model import Float64

_MOST_POINTS: Final = 400  # beyond, neighbours are put together: the work grows with the square
_FILTER: Final = 5


def cut(values: Float64, stretches: int, least: int) -> list[int]:
    """Return the positions that part the values into at most so many stretches, each of ``least`` or more."""
    size = -(-values.size // _MOST_POINTS)
    smooth = _running_median(values)
    smooth = np.log(smooth) if smooth.min() > 0 else smooth
    grouped = np.array([part.mean() for part in np.split(smooth, range(size, values.size, size))])
    shortest = max(1, -(-least // size))
    stretches = min(stretches, grouped.size // shortest)
    return [at * size for at in _best(grouped, stretches, shortest)] if stretches > 1 else []


def again(values: Float64, cuts: Sequence[int], least: int) -> list[int]:
    """Move each cut to its best place between its neighbours."""
    moved = list(cuts)
    for number in range(len(moved)):
        low = moved[number - 1] if number else 0
        high = moved[number + 1] if number + 1 < len(moved) else values.size
        moved[number] = low + _one_cut(
            values[low:high], min(least, moved[number] - low, high - moved[number])
        )
    return moved


def _one_cut(values: Float64, least: int) -> int:
    """Return where two levels, each its median, fit best: a place of least distance."""
    values = np.log(values) if values.min() > 0 else values
    before = float(np.median(values[: max(least, values.size // 4)]))
    after = float(np.median(values[-max(least, values.size // 4) :]))
    gain = np.abs(values - after) - np.abs(values - before)
    cost = np.concatenate([[0.0], np.cumsum(-gain)])
    return least + int(cost[least : values.size - least + 1].argmin())


def _running_median(values: Float64) -> Float64:
    padded = np.pad(values, _FILTER // 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, _FILTER)
    return np.asarray(np.median(windows, axis=1))


def _best(values: Float64, stretches: int, least: int) -> list[int]:
    n = values.size
    cost = _costs(values, least)
    total = cost[0].copy()  # of the values before each position, in one stretch
    came = []
    for _ in range(stretches - 1):
        longer = total[:, None] + cost
        came.append(longer.argmin(axis=0))
        total = longer.min(axis=0)
    cuts, at = [], n
    for one in reversed(came):
        at = int(one[at])
        cuts.append(at)
    return sorted(cuts)


def _costs(values: Float64, least: int) -> Float64:
    """(from, to): squared distances from the mean; infinite for what is too short."""
    n = values.size
    total = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    size = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]
    safe = np.maximum(size, 1)
    cost = squares[None, :] - squares[:, None] - (total[None, :] - total[:, None]) ** 2 / safe
    return np.where(size >= least, np.maximum(cost, 0.0), np.inf)
