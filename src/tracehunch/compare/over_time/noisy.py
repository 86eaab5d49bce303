"""Values that vary by themselves (times): steps, trends and patterns by turns that are more than noise.

Nothing is called a change unless it is unlikely by chance (``chance``, corrected for all that was tried),
larger than what the same work differs by anyway (the margins of ``compare.noise``), and seen in nearly all
calls. Neighbouring calls are alike, and so are the calls of a cycle: tests work on batches of calls, and
where there are cycles the cycles themselves must lie apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.over_time.found import Found
from tracehunch.compare.over_time.segments import again, cut
from tracehunch.compare.over_time.statistics import (
    mann_kendall,
    normal_tail,
    spread,
    step_p,
    superiority,
    t_tail,
    theil_sen,
    trend_p,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.trace.model import Float64, Int64

FEWEST: Final = 8  # calls
_BATCHES: Final = 12
_MANY_BATCHES: Final = 24
_MANY: Final = 96  # calls from which on there are many batches
_LEAST: Final = 3  # calls of a level, and no fewer than one of twelve: a cluster of slow calls is no level
_PARTS: Final = 12
_CLEAR: Final = 0.9  # chance that a call after a step lies beyond one before
_CYCLES: Final = 4  # from so many on they must lie apart themselves
_CYCLE_P: Final = 0.003  # which they seldom do by chance, whatever place is best
_ALONE: Final = 3.0  # how much wider the margin is between cycles that are too few to show how they differ
_MOST_LEVELS: Final = 5
_FAR_OF: Final = 5  # calls from which on one may be far off
_FAR_SCALES: Final = 4.0
_FAR_SHARE: Final = 0.1
_NEAR: Final = 6  # calls on either side of a known moment
_FLOOR: Final = 10  # of the margin: noise that is always there, should the few calls not show it
_RISING: Final = 0.6  # Kendall's tau of a trend
_SELDOM: Final = 0.001  # chance of it without one
_LONGEST: Final = 12  # calls of a pattern
_TURNS: Final = 4  # times that it must come round
_ODD_SCALES: Final = 10.0  # scaled median deviations from which on a call is a one-off
_ODD_SHARE: Final = 0.5  # and so much more than the level
_MOST_ODD: Final = 0.05
_SIMPLER: Final = 0.15  # worse that a trend may fit for each step it saves


@dataclass(frozen=True, slots=True)
class Noise:
    """What counts: the chance allowed of a false alarm, the least change (share and absolute)."""

    chance: float
    margin: float
    floor: float

    def matters(self, change: float, level: float) -> bool:
        """Tell whether a change of this size is one at all."""
        return abs(change) > max(self.margin * abs(level), self.floor)


def examine(values: Float64, cycle: Int64, numbers: Int64, noise: Noise) -> list[Found]:
    """Say what becomes of noisy values in order of time.

    ``cycle`` ascends; ``numbers`` count the calls, unrecorded ones, too.
    """
    if values.size < FEWEST:
        return [Found("too-few")]
    found: list[Found] = []
    turns = _turns(values, cycle, numbers, noise)
    if turns is not None:
        found.append(turns)
        values = _without_turns(values, turns)
    moved = _moved(values, cycle, noise)
    found += [moved] if moved is not None else []
    odd = _odd(values, moved)
    found += [Found("one-off", odd=odd)] if odd else []
    return found or [Found("constant")]


def step_at(values: Float64, at: int, noise: Noise) -> float | None:
    """Return the chance of a step at a place known otherwise; None where there is none that matters."""
    first, second = values[max(at - _NEAR, 0) : at], values[at : at + _NEAR]
    if min(first.size, second.size) < _LEAST - 1:
        return None
    level, later = float(np.median(first)), float(np.median(second))
    if not noise.matters(later - level, level):
        return None
    above = superiority(first, second)
    if max(above, 1 - above) < _CLEAR:
        return None
    near = np.concatenate([first, second])
    p = step_p(near, first.size, noise.margin * abs(level) / _FLOOR, 1)
    return p if p < noise.chance else None


def _moved(values: Float64, cycle: Int64, noise: Noise) -> Found | None:
    """Find steps or a trend: what fits better."""
    batch = _batches(cycle)
    steps = _steps(values, cycle, batch, noise)
    trend = _trend(values, cycle, batch, noise)
    if steps is None or trend is None:
        return steps or trend
    line = spread(values - (trend.slope or 0.0) * np.arange(values.size))
    stairs = sum(spread(part) for part in np.split(values, steps.cuts))
    allowed = stairs * (1 + _SIMPLER * (len(steps.cuts) - 1))
    return trend if line < allowed else steps


def _batches(cycle: Int64) -> Int64:
    """Return the batch of each call: cycles, or parts of them where there are few."""
    wanted = _MANY_BATCHES if cycle.size >= _MANY else _BATCHES
    _, first, n = np.unique(cycle, return_index=True, return_counts=True)
    pieces = max(1, math.ceil(wanted / first.size))
    batch = np.zeros(cycle.size, dtype=np.int64)
    for number, (start, size) in enumerate(zip(first.tolist(), n.tolist(), strict=True)):
        within = np.arange(size) * min(pieces, size) // size
        batch[start : start + size] = number * pieces + within
    _, numbered = np.unique(batch, return_inverse=True)
    return numbered.reshape(-1).astype(np.int64)


def _medians(values: Float64, group: Int64) -> Float64:
    """Return the median of each group; groups are contiguous."""
    bounds = np.flatnonzero(np.diff(group)) + 1
    return np.array([np.median(part) for part in np.split(values, bounds)])


def _steps(values: Float64, cycle: Int64, batch: Int64, noise: Noise) -> Found | None:
    """Cut into levels, then drop the cut that is least sure until all are."""
    least = max(_LEAST, values.size // _PARTS)
    cuts = cut(values, _MOST_LEVELS, least)
    while cuts:
        cuts = again(values, cuts, least)
        sure = [_cut_p(values, cycle, batch, beside, noise) for beside in _neighbours(cuts, values.size)]
        if max(sure) < noise.chance:
            return Found("step", cuts=tuple(cuts), p=max(sure))
        cuts.pop(sure.index(max(sure)))
    return None


def _neighbours(cuts: Sequence[int], n: int) -> list[tuple[int, int, int]]:
    """Return each cut with the ends of the two levels that it parts."""
    bounds = [0, *cuts, n]
    return list(zip(bounds, bounds[1:], bounds[2:], strict=False))


def _cut_p(values: Float64, cycle: Int64, batch: Int64, beside: tuple[int, int, int], noise: Noise) -> float:
    """Chance of a step as large without one; from 1 on where it is none that counts."""
    low, at, high = beside
    before, after = values[low:at], values[at:high]
    level, change = float(np.median(before)), float(np.median(after) - np.median(before))
    above = superiority(before, after)
    if not noise.matters(change, level) or max(above, 1 - above) < _CLEAR:
        return 2.0 - abs(change) / (abs(level) or 1.0)
    first = _medians(_without_far(before), batch[low:at])
    second = _medians(_without_far(after), batch[at:high])
    if first.size + second.size < 2 * _LEAST:
        return 1.0
    floor = noise.margin * abs(level) / _FLOOR
    p = step_p(np.concatenate([first, second]), first.size, floor, values.size)
    return p if _cycles_apart(values[low:high], cycle[low:high], at - low, noise) else 1.0


def _without_far(values: Float64) -> Float64:
    """Bring the few values that lie far off back to the edge of the others (Winsor's way)."""
    if values.size < _FAR_OF:
        return values
    level = float(np.median(values))
    reach = _FAR_SCALES * 1.4826 * float(np.median(np.abs(values - level)))
    far = np.abs(values - level) > reach
    few = far.sum() <= max(1.0, _FAR_SHARE * values.size)
    return np.clip(values, level - reach, level + reach) if few else values


def _cycles_apart(values: Float64, cycle: Int64, cut: int, noise: Noise) -> bool:
    """Tell whether cycles before and after a step lie apart by more than cycles differ by."""
    sides = [_medians(values[part], cycle[part]) for part in (slice(0, cut), slice(cut, None))]
    change = float(sides[1].mean() - sides[0].mean())
    n = [side.size for side in sides]
    between = bool(cycle[cut] != cycle[cut - 1])
    if sum(n) < _CYCLES:
        level = float(np.median(values[:cut]))
        return not between or abs(change) > _ALONE * max(noise.margin * abs(level), noise.floor)
    rest = np.concatenate([side - side.mean() for side in sides])
    freedom = sum(n) - 2
    error = math.sqrt(float((rest**2).sum()) / freedom * (1 / n[0] + 1 / n[1]))
    return not error or t_tail(change / error, freedom) < _CYCLE_P


def _trend(values: Float64, cycle: Int64, batch: Int64, noise: Noise) -> Found | None:
    number = np.arange(values.size, dtype=np.float64)
    at, means = _medians(number, batch), _medians(values, batch)
    if means.size < FEWEST:
        return None
    slope = theil_sen(means, at)
    means = _medians(_without_far(values - slope * number) + slope * number, batch)
    level = float(np.median(values[: values.size // 5 + 1]))
    if not noise.matters(slope * (values.size - 1), level):
        return None
    p = trend_p(means, at, slope, noise.margin * abs(level) / _FLOOR)
    concordance, by_chance = mann_kendall(means)
    if p >= noise.chance or abs(concordance) < _RISING or by_chance >= _SELDOM:
        return None
    of_cycles = _medians(values, cycle)
    if of_cycles.size >= _CYCLES and abs(_order(of_cycles)) < _CLEAR:
        return None
    return Found("trend", slope=slope, p=p)


def _order(values: Float64) -> float:
    """Rank correlation with time (Spearman)."""
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable").astype(np.float64)
    time = np.arange(values.size, dtype=np.float64)
    return float(np.corrcoef(ranks, time)[0, 1])


def _turns(values: Float64, cycle: Int64, numbers: Int64, noise: Noise) -> Found | None:
    """Find the shortest pattern in which one call of every k differs from the others.

    Not one that comes round with the cycles: that is the profiler's own doing.
    """
    strides = set(np.diff(numbers[np.flatnonzero(np.diff(cycle, prepend=-1))]).tolist())
    candidates = 0
    for every in range(2, min(_LONGEST, values.size // _TURNS) + 1):
        for phase in range(every):
            candidates += 1
            mine = numbers % every == phase
            p = _turn_p(values[mine], values[~mine], noise) * candidates
            if p < noise.chance and every not in strides:
                return Found("turns", odd=tuple(np.flatnonzero(mine).tolist()), every=every, p=p)
    return None


def _turn_p(odd: Float64, rest: Float64, noise: Noise) -> float:
    """Chance that calls of one phase differ as much from the rest (Mann and Whitney 1947)."""
    if min(odd.size, rest.size) < _TURNS:
        return 1.0
    level = float(np.median(rest))
    if not noise.matters(float(np.median(odd)) - level, level):
        return 1.0
    above = superiority(rest, odd)
    if max(above, 1 - above) < 0.5 + _CLEAR / 2:
        return 1.0
    n = odd.size + rest.size
    if above in (0.0, 1.0):
        return 2 / math.comb(n, odd.size)
    return normal_tail((above - 0.5) / math.sqrt((n + 1) / (12 * odd.size * rest.size)))


def _without_turns(values: Float64, turns: Found) -> Float64:
    mine = np.zeros(values.size, dtype=bool)
    mine[list(turns.odd)] = True
    level, odd = float(np.median(values[~mine])), float(np.median(values[mine]))
    return np.where(mine, values - odd + level, values)


def _odd(values: Float64, moved: Found | None) -> tuple[int, ...]:
    """Find calls far above all others around them."""
    return tuple(sorted(_far(values, moved)))


def _far(values: Float64, moved: Found | None) -> Iterator[int]:
    flat = values - (moved.slope or 0.0) * np.arange(values.size) if moved else values
    low = 0
    for part in np.split(flat, moved.cuts if moved else ()):
        level = float(np.median(part))
        scale = 1.4826 * float(np.median(np.abs(part - level)))
        far = np.flatnonzero(part - level > max(_ODD_SCALES * scale, _ODD_SHARE * abs(level)))
        if far.size <= max(1, _MOST_ODD * part.size):
            yield from (low + far).tolist()
        low += part.size
