"""The points of a scope -> what became of each of its facts.

Exact facts first: every change of theirs is one. Then the times, which vary by themselves: a change counts if
chance explains it less often than ``FALSE_ALARMS`` over the whole report; where an exact fact of the scope
changes at the same moment, less often than ``BESIDE``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.noise import GPU_FLOOR_US, GPU_MARGIN, HOST_FLOOR_US, HOST_MARGIN
from tracehunch.compare.over_time import exact, noisy
from tracehunch.compare.over_time.calls import ALONE, BLOCKS, COLLECTIVE, ELEMENTS, KEPT, OUTSIDE
from tracehunch.compare.over_time.found import Found
from tracehunch.compare.over_time.levels import WATCHED, drift_of
from tracehunch.compare.over_time.model import COMPUTE
from tracehunch.compare.over_time.series import CALLS, Points, known, settled, settled_exactly
from tracehunch.compare.over_time.statistics import mann_kendall, theil_sen
from tracehunch.facts import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.over_time.model import Drift, Place
    from tracehunch.facts.model import Value
    from tracehunch.trace.model import Float64, Int64

FALSE_ALARMS: Final = 0.01
"""Chance of one or more steps, trends or turns of times in a report on a run in which nothing changes."""
BESIDE: Final = 0.05
"""The same for one time at a moment at which something exact changes."""
_CAUTION: Final = 10
"""What the tests make too much of at most, where calls and cycles are more alike than they assume."""
TESTS: Final = 3  # of a time: step, trend, turns

TIMES: Final = (
    "gpu_time", COMPUTE, ALONE, "wall_time", "cpu_time", OUTSIDE, "gpu_idle", "sync_time", "copy_time",
    "compiled.compile_time",
)  # fmt: skip
"""Facts that vary by themselves and are tested. Rates and shares follow from these and from counts."""
_ON_GPU: Final = ("gpu_time", COMPUTE, ALONE, "copy_time")
_WITH_WAITS: Final = ("gpu_time", "gpu_idle")
"""What depends on how long collectives wait for other ranks: not looked at where there are any."""
_MOVES: Final = ("step", "trend", "turns")
_SAME_SHARE: Final = GPU_MARGIN
"""Shares that differ by no more tell the same."""
_AROUND: Final = 6  # points on either side of a moment
_EARLY: Final = ("syncs", "allocations", "launches", "compiled")
"""Counts that are higher until all is set up, as times are."""
_AT_FIRST: Final = 0.15
_FLOORS: Final = 10
_IDLE_MARGIN: Final = 0.05
_FEW_RISING: Final = 4
_MOST_PAIRS: Final = 2000
_LEAK_SHARE: Final = 0.9


def tests_of(points: Points) -> int:
    """Count the facts of a scope that chance can play with."""
    return sum(
        known(points.numbers[key]).size >= noisy.FEWEST for key in (*_times(points), *_kept_key(points))
    )


def _times(points: Points) -> list[str]:
    with_waits: tuple[str, ...] = _WITH_WAITS if COMPUTE in points.numbers else ()
    with_waits += (COMPUTE,) if ALONE in points.numbers else ()
    return [key for key in TIMES if key in points.numbers and key not in with_waits]


def _kept_key(points: Points) -> list[str]:
    """Return it for steps: what a scope inside keeps, the rest of its step may give back."""
    return [KEPT] if KEPT in points.numbers and points.kind == "step" else []


def is_exact(key: str) -> bool:
    """Tell whether every change of a fact is one."""
    return key in (BLOCKS, ELEMENTS, CALLS) or (
        key not in WATCHED and KEYS[key].unit in ("count", "bytes", "flop", "text")
    )


def drifts_of(points: Points, tests: int) -> list[Drift]:
    """Say what becomes of each fact of a scope; ``tests``: how many facts of all scopes are tested."""
    chance = FALSE_ALARMS / _CAUTION / (TESTS * max(tests, 1))
    exactly = [one for key in points.numbers if is_exact(key) for one in _exact(points, key, chance)]
    exactly += [one for key in points.words for one in _exact_words(points, key)]
    exactly = [_warm_up(one, points) for one in exactly]
    places, rising = _moments(points, exactly), any(one.kind == "trend" for one in exactly)
    times = [
        _warm_up(one, points)
        for key in _times(points)
        for one in _noisy(points, key, chance, places, rising=rising)
    ]
    if ALONE in points.numbers:
        times = _borne_out(points, chance, [*exactly, *times])
    kept = [one for key in _kept_key(points) for one in _kept(points, key, chance)]
    return [*exactly, *times, *kept]


def _moments(points: Points, drifts: Sequence[Drift]) -> list[int]:
    """Return at which points steps are."""
    calls = sorted({place.call - 1 for one in drifts if one.kind == "step" for place in one.at})
    return [int(np.searchsorted(points.call - 1, one)) for one in calls]


def _borne_out(points: Points, chance: float, drifts: Sequence[Drift]) -> list[Drift]:
    """Return the times' drifts, with that of all kernels but collectives, some of which run beside these.

    Those are slower, and how many are depends on which rank runs ahead. So a change of the sum counts only
    where kernels that run beside none change, too, the calls take longer, or something exact changes.
    """
    times = [one for one in drifts if one.key in TIMES]
    moved = any(one.key == ALONE and one.kind in _MOVES for one in times)
    told = _sum_of_kernels(points, chance, drifts, moved=moved)
    return [*told, *(one for one in times if not (one.key == ALONE and _is_told(one, told)))]


def _is_told(drift: Drift, told: Sequence[Drift]) -> bool:
    """Tell whether another drift moves in the same way by the same share."""
    share = drift.share or 0.0
    return drift.kind in _MOVES and any(
        one.kind == drift.kind and abs((one.share or 0.0) - share) <= _SAME_SHARE for one in told
    )


def _sum_of_kernels(points: Points, chance: float, drifts: Sequence[Drift], *, moved: bool) -> list[Drift]:
    values = points.numbers[COMPUTE]
    at = settled(known(values), points.cycle)
    if not at.size:
        return []
    exactly = [one for one in drifts if one.key not in TIMES]
    bearing = [one for one in drifts if one.key in (ALONE, "wall_time")]
    places = sorted({*_moments(points, exactly), *_same_way(points, values, bearing)})
    some, noise = values[at], _noise(points, COMPUTE, chance, at)
    rising = any(one.kind == "trend" for one in (*exactly, *bearing))
    beside = _beside(some, at, noise, places, rising=rising)
    rest = some if beside is None else _without(some, beside)
    turns = {one.every for one in (*exactly, *bearing) if one.kind == "turns"}
    found = [
        _unless_borne_out(one, turns, moved=moved)
        for one in noisy.examine(rest, points.cycle[at], points.numbering[at], noise)
    ]
    if beside is not None:
        found = [beside, *(one for one in found if one.kind != "constant")]
    made = [drift_of(points, COMPUTE, one, at, some.tolist()) for one in found]
    waits = points.numbers[COLLECTIVE][at].tolist()
    aside = [one for one in found if one.kind == "beside-collectives"]
    made += [drift_of(points, COLLECTIVE, one, at, waits) for one in aside]
    return [_from_the_first(points, one.key, one) if len(one.levels) > len(one.at) else one for one in made]


def _unless_borne_out(found: Found, turns: set[int | None], *, moved: bool) -> Found:
    if found.kind not in _MOVES or (found.kind == "turns" and found.every in turns):
        return found
    return replace(found, kind="varies" if moved else "beside-collectives")


def _same_way(points: Points, values: Float64, drifts: Sequence[Drift]) -> Iterator[int]:
    """Yield the points of steps at which other values go the same way, up or down."""
    for drift in drifts:
        for number, place in enumerate(drift.at if drift.kind == "step" else ()):
            at = int(np.searchsorted(points.call, place.call))
            change = _number(drift.levels[number + 1].value) - _number(drift.levels[number].value)
            before, after = values[max(at - _AROUND, 0) : at], values[at : at + _AROUND]
            if change * (_middle(after) - _middle(before)) > 0:
                yield at


def _number(value: Value) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _middle(values: Float64) -> float:
    return 0.0 if np.isnan(values).all() else float(np.nanmedian(values))


def _warm_up(drift: Drift, points: Points) -> Drift:
    """Call it a warm-up if a time, or what setting up takes, is higher at first and then lower for good."""
    may = drift.key in TIMES or drift.key.startswith(_EARLY)
    if drift.kind != "step" or not may or len(drift.levels) != 2:
        return drift
    first = drift.levels[0]
    higher = drift.share is not None and drift.share < 0
    cycles = int(points.cycle[-1]) + 1
    early = (cycles > 2 and first.last.cycle == 0) or first.calls <= _AT_FIRST * len(points)
    return replace(drift, kind="warm-up") if higher and early else drift


def _exact(points: Points, key: str, chance: float) -> Iterator[Drift]:
    values = points.numbers[key]
    at = known(values)
    if not at.size:
        return
    at = settled_exactly(at, points.cycle, values.tolist())
    found = exact.examine(values[at].tolist(), points.numbering[at].tolist())
    if found.kind == "varies" and at.size >= noisy.FEWEST:
        level = abs(float(np.median(values[at])))
        noise = noisy.Noise(chance, HOST_MARGIN, level * HOST_MARGIN)
        moved = [
            one
            for one in noisy.examine(values[at], points.cycle[at], points.numbering[at], noise)
            if one.kind in ("step", "trend")
        ]
        found = moved[0] if moved else found
    yield drift_of(points, key, found, at, values[at].tolist())


def _exact_words(points: Points, key: str) -> Iterator[Drift]:
    values = points.words[key]
    at = known(values)
    if at.size:
        at = settled_exactly(at, points.cycle, values)
        some = [values[one] for one in at.tolist()]
        yield drift_of(points, key, exact.examine(some, points.numbering[at].tolist()), at, some)


def _noisy(
    points: Points, key: str, chance: float, moments: Sequence[int], *, rising: bool
) -> Iterator[Drift]:
    values = points.numbers[key]
    at = settled(known(values), points.cycle)
    if not at.size:
        return
    some, noise = values[at], _noise(points, key, chance, at)
    beside = _beside(some, at, noise, moments, rising=rising)
    rest = some if beside is None else _without(some, beside)
    found = noisy.examine(rest, points.cycle[at], points.numbering[at], noise)
    if beside is not None:
        found = [_both(beside, found), *(one for one in found if one.kind in ("turns", "one-off"))]
    for one in found:
        drift = drift_of(points, key, one, at, some.tolist())
        yield _from_the_first(points, key, drift) if one.kind == "step" else drift


def _from_the_first(points: Points, key: str, drift: Drift) -> Drift:
    return replace(drift, at=tuple(_earlier(points, key, drift, number) for number in range(len(drift.at))))


def _earlier(points: Points, key: str, drift: Drift, number: int) -> Place:
    """Return where a step is: a call earlier if that is its cycle's first, was left out, and shows it."""
    place = drift.at[number]
    at = int(np.searchsorted(points.call, place.call))
    before, after = (drift.levels[one].value for one in (number, number + 1))
    value = float(points.numbers[key][at - 1]) if at else np.nan
    first_of_cycle = at > 1 and points.cycle[at - 1] == place.cycle != points.cycle[at - 2]
    if not (isinstance(before, int | float) and isinstance(after, int | float)):
        return place
    if not first_of_cycle or np.isnan(value):
        return place
    return points.place(at - 1) if abs(value - after) < abs(value - before) else place


def _noise(points: Points, key: str, chance: float, at: Int64) -> noisy.Noise:
    if key == "gpu_idle":
        return noisy.Noise(chance, 0.0, _IDLE_MARGIN)
    n = points.numbers.get("gpu_activities")
    activities = float(np.nanmedian(n[at])) if n is not None and not np.isnan(n[at]).all() else 1.0
    floor = GPU_FLOOR_US if key in _ON_GPU else HOST_FLOOR_US
    margin = GPU_MARGIN if key in _ON_GPU else HOST_MARGIN
    return noisy.Noise(chance, margin, floor * min(max(activities, 1.0), _FLOORS))


def _beside(
    values: Float64, at: Int64, noise: noisy.Noise, moments: Sequence[int], *, rising: bool
) -> Found | None:
    """Find a step of a time where an exact fact has one, or a trend beside one."""
    sure = replace(noise, chance=BESIDE)
    cuts, worst = [], 0.0
    bounds = [int(np.searchsorted(at, one)) for one in moments]
    for number, cut in enumerate(bounds):
        low = bounds[number - 1] if number else 0
        high = bounds[number + 1] if number + 1 < len(bounds) else at.size
        p = noisy.step_at(values[low:high], cut - low, sure) if low < cut < high else None
        if p is not None:
            cuts.append(cut)
            worst = max(worst, p)
    if cuts:
        return Found("step", cuts=tuple(cuts), p=worst)
    if rising and _FEW_RISING <= values.size <= _MOST_PAIRS:
        slope, (_, p) = theil_sen(values, np.arange(values.size, dtype=np.float64)), mann_kendall(values)
        if p < BESIDE and noise.matters(slope * (values.size - 1), float(values[0])):
            return Found("trend", slope=slope, p=p)
    return None


def _without(values: Float64, found: Found) -> Float64:
    """Return the values as if what was found beside exact facts were not there."""
    if found.kind == "trend":
        return values - (found.slope or 0.0) * np.arange(values.size)
    parts = np.split(values, found.cuts)
    return np.concatenate([part - np.median(part) + np.median(parts[0]) for part in parts])


def _both(beside: Found, rest: Sequence[Found]) -> Found:
    """Join the steps beside exact facts with those that are there without."""
    more = next((one for one in rest if one.kind == "step"), None)
    if more is None or beside.kind != "step":
        return beside
    return replace(beside, cuts=tuple(sorted({*beside.cuts, *more.cuts})))


def _kept(points: Points, key: str, chance: float) -> Iterator[Drift]:
    """Find memory that every call takes and never gives back: a sign test on what calls keep."""
    values = points.numbers[key]
    at = settled(known(values), points.cycle)
    some = values[at]
    grows = some > 0
    if at.size < noisy.FEWEST or grows.mean() < _LEAK_SHARE or 0.5 ** int(grows.sum()) >= max(chance, 1e-4):
        found = Found("constant" if not some.size or (some == some[0]).all() else "varies")
        yield drift_of(points, key, found, at, some.tolist())
        return
    slope = float(some.mean())
    found = Found("trend", slope=slope, p=0.5 ** int(grows.sum()))
    yield drift_of(points, key, found, at, np.cumsum(some).tolist())
