"""What a test found in a series -> a Drift: places, levels, and values for a sparkline."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.over_time.calls import ALONE, BLOCKS, COLLECTIVE, ELEMENTS, KEPT, NAMES, OUTSIDE
from tracehunch.compare.over_time.model import COMPUTE, Drift, Level
from tracehunch.compare.over_time.series import CALLS
from tracehunch.facts import KEYS

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tracehunch.compare.over_time.found import Found
    from tracehunch.compare.over_time.series import Points
    from tracehunch.facts.model import Value
    from tracehunch.trace.model import Int64

WATCHED: Final = {
    BLOCKS: "count", ELEMENTS: "count", KEPT: "bytes", OUTSIDE: "us", CALLS: "count", COMPUTE: "us",
    COLLECTIVE: "us", ALONE: "us",
    NAMES: "text",
}  # fmt: skip
"""What is watched beside the facts, with its unit."""

_BUCKETS: Final = 60
_BESIDE_ODD: Final = 5


def unit_of(key: str) -> str:
    """Return the unit of a fact, or of what is watched beside them."""
    return WATCHED[key] if key in WATCHED else KEYS[key].unit


def drift_of(points: Points, key: str, found: Found, at: Int64, values: Sequence[Hashable]) -> Drift:
    """Put what was found into words of places and levels; ``values`` are those of the points ``at``."""
    odd = set(found.odd)
    if found.slope is not None:
        fifth = max(len(values) // 5, 1)
        parts = [list(range(fifth)), list(range(len(values) - fifth, len(values)))]
    elif found.cuts:
        bounds = [0, *found.cuts, len(values)]
        parts = [list(range(low, high)) for low, high in pairwise(bounds)]
    elif found.kind in ("turns", "one-off"):
        parts = [_around(odd, len(values), found.kind), sorted(odd)]
    else:
        parts = [list(range(len(values)))]
    usual = [_usual(part, odd) if found.cuts else part for part in parts]
    levels = tuple(
        _level(points, key, [int(at[one]) for one in part], [values[one] for one in part])
        for part in usual
        if part
    )
    places = found.cuts or found.odd
    series = _series(values)
    moves = series and found.kind != "constant"
    return Drift(
        scope=points.name,
        key=key,
        unit=unit_of(key),
        kind=found.kind,
        levels=levels,
        at=tuple(points.place(int(at[one])) for one in places),
        every=found.every,
        slope=found.slope,
        p=found.p,
        share=share_of(levels),
        series=series,
        series_at=_places(points, at, len(series)) if moves else (),
        series_by="step" if points.by_step else "call",
    )


def _around(odd: set[int], n: int, kind: str) -> list[int]:
    """Return the other calls; of one-offs those near them, for the level may be another elsewhere."""
    near = [one for one in range(n) if kind != "one-off" or min(abs(one - at) for at in odd) <= _BESIDE_ODD]
    return [one for one in near if one not in odd] or [one for one in range(n) if one not in odd]


def _usual(part: Sequence[int], odd: set[int]) -> list[int]:
    return [one for one in part if one not in odd] or list(part)


def _level(points: Points, key: str, at: Sequence[int], values: Sequence[Hashable]) -> Level:
    return Level(points.place(at[0]), points.place(at[-1]), len(at), _value(key, values))


def _value(key: str, values: Sequence[Hashable]) -> Value:
    """Return the level of some values: the median of times, else the most frequent."""
    numbers = [one for one in values if isinstance(one, int | float)]
    if len(numbers) == len(values):
        if unit_of(key) in ("us", "ratio"):
            return round(float(np.median(numbers)), 3 if unit_of(key) == "us" else 6)
        middle = sorted(numbers)[(len(numbers) - 1) // 2]
        return int(middle) if float(middle).is_integer() else round(float(middle), 3)
    counted: dict[Hashable, int] = {}
    for one in values:
        counted[one] = counted.get(one, 0) + 1
    usual = max(counted, key=lambda one: counted[one])
    return tuple(sorted(map(str, usual))) if isinstance(usual, frozenset) else str(usual)


def share_of(levels: Sequence[Level]) -> float | None:
    """Return last over first level, less 1; None where one is no number, or the first is 0."""
    if len(levels) < 2:
        return None
    first, last = levels[0].value, levels[-1].value
    if not isinstance(first, int | float) or not isinstance(last, int | float) or not first:
        return None
    return round(last / first - 1, 6)


def _series(values: Sequence[Hashable]) -> tuple[float | None, ...]:
    """Return medians of at most so many buckets; nothing for texts."""
    if not all(isinstance(one, int | float) for one in values):
        return ()
    numbers = np.array(values, dtype=np.float64)
    parts = np.array_split(numbers, min(_BUCKETS, numbers.size)) if numbers.size else []
    return tuple(round(float(np.median(part)), 6) for part in parts)


def _places(points: Points, at: Int64, buckets: int) -> tuple[int, ...]:
    """Return the step (or call) of the first point of each bucket."""
    numbers = (points.step if points.by_step else points.call)[at]
    return tuple(int(part[0]) for part in np.array_split(numbers, buckets))
