"""How the calls of one rank stand to those of another: which of them are the same collective.

Calls are the same where the process group numbered them alike. Without such numbers the calls of a step are
held against those of the same step, then all calls against all with one shift between them, and what is left
by the moments at which they ended. Where two answers are about as good there is none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracehunch.trace.model import Int64

TIGHT_NS: Final = 100_000
"""Ends of the same collectives, by clocks that do not jump, keep their distance to within so much."""
_CLEARLY: Final = 1.5
_HALF: Final = 0.5
_MUCH_NEARER: Final = 10.0
_WIDE: Final = 3.0
_FEW: Final = 3
_ENOUGH: Final = 4
_OFF: Final = 0.4  # of the time from one call to the next, as it is where they come fast
_SHORT: Final = 25  # percentile
_MOST_DRIFT: Final = 200e-6  # of two clocks
_SAMPLE: Final = 48
_FINALISTS: Final = 6
_NEAR_NS: Final = 20_000
_AS_BEFORE_NS: Final = (3_000, 10_000, 30_000)
"""By how little ends of the same collectives on two ranks move against each other from one to the next."""
_COMMON_CLOCK_NS: Final = 25_000
"""What ends of one collective differ by on one clock: clocks of two hosts are seldom that near by chance."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one rank in one group and recording, in order; ``sequence`` and ``step`` may be ABSENT.

    ``together``: whether no rank can leave such a call before all have joined it.
    """

    number: Int64
    sequence: Int64
    signature: Int64
    step: Int64
    end_ns: Int64
    together: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.number.size


@dataclass(frozen=True, slots=True)
class Pairs:
    """Positions in the calls of one and of the other rank that are the same collective."""

    own: Int64
    other: Int64

    def __len__(self) -> int:
        return self.own.size

    def distance_ns(self, own: Calls, other: Calls) -> Int64:
        """By how much each ended later on the one rank's clock."""
        return own.end_ns[self.own] - other.end_ns[self.other]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Calls that a shift pairs: how steadily their ends keep their distance, and its median."""

    pairs: Pairs
    steady: float
    distance_ns: float


NO_PAIRS: Final = Pairs(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def pair(own: Calls, other: Calls) -> Pairs:
    """Return which calls of two ranks are the same; none where that is not certain."""
    if not len(own) or not len(other):
        return NO_PAIRS
    numbered = _by_sequence(own, other)
    if numbered is not None:
        return numbered
    found = _by_step(own, other)
    if not len(found) or _spread(found.distance_ns(own, other)) > _NEAR_NS:
        shifted = _by_shift(own, other, found)
        found = shifted if shifted is not None else found
    found = _in_place(own, other, found)
    return _with_the_rest(own, other, found) if _is_sure(own, other, found) else NO_PAIRS


def overlaps(own: Calls, other: Calls) -> bool:
    """Whether two ranks recorded their calls at one time, which may be that of a single call."""
    first, last = other.end_ns[0] - _COMMON_CLOCK_NS, other.end_ns[-1] + _COMMON_CLOCK_NS
    return bool(own.end_ns[0] <= last and first <= own.end_ns[-1])


def _is_sure(own: Calls, other: Calls, found: Pairs) -> bool:
    """Whether enough calls pair, and end together: where many were lost, chance pairs a few, or all.

    Those of recordings that do not overlap are another matter: they may be of other times.
    """
    overlap = overlaps(own, other)
    distance = found.distance_ns(own, other)[own.together[found.own]]
    near = not overlap or _spread(distance) <= TIGHT_NS
    return near and len(found) >= min(_ENOUGH, min(len(own), len(other)) // 2)


def _by_sequence(own: Calls, other: Calls) -> Pairs | None:
    """Pair equal sequence numbers; None where a rank has calls without one, or one twice."""
    for one in (own, other):
        if (one.sequence == ABSENT).any() or np.unique(one.sequence).size != len(one):
            return None
    _, mine, theirs = np.intersect1d(own.sequence, other.sequence, assume_unique=True, return_indices=True)
    return _alike(own, other, Pairs(mine, theirs))


def _alike(own: Calls, other: Calls, pairs: Pairs) -> Pairs:
    same = own.signature[pairs.own] == other.signature[pairs.other]
    return Pairs(pairs.own[same], pairs.other[same])


def _by_step(own: Calls, other: Calls) -> Pairs:
    """Pair the calls of steps in which both ranks made the same ones."""
    if np.array_equal(own.step, other.step) and np.array_equal(own.signature, other.signature):
        known = np.flatnonzero(own.step != ABSENT)
        return Pairs(known, known)
    mine, theirs = [], []
    for step in np.intersect1d(own.step[own.step != ABSENT], other.step).tolist():
        first, second = np.flatnonzero(own.step == step), np.flatnonzero(other.step == step)
        if np.array_equal(own.signature[first], other.signature[second]):
            mine.append(first)
            theirs.append(second)
    return Pairs(np.concatenate(mine), np.concatenate(theirs)) if mine else NO_PAIRS


def _in_place(own: Calls, other: Calls, pairs: Pairs) -> Pairs:
    """Leave out pairs that are off by a call: where a rank lost one, those after it end an interval apart.

    Calls that may end on one rank long before another go with the nearest before them that cannot.
    """
    sure = np.flatnonzero(own.together[pairs.own])
    if sure.size < _FEW:
        return pairs
    kept = _near_the_longest(own, other, Pairs(pairs.own[sure], pairs.other[sure]))
    nearest = np.maximum(np.searchsorted(sure, np.arange(len(pairs)), "right") - 1, 0)
    return Pairs(pairs.own[kept[nearest]], pairs.other[kept[nearest]])


def _near_the_longest(own: Calls, other: Calls, pairs: Pairs) -> NDArray[np.bool_]:
    """Tell which pairs end as far apart as those of the longest run without a jump: of the steadiest one."""
    distance = pairs.distance_ns(own, other)
    off = max(2.0 * _NEAR_NS, _OFF * float(np.percentile(np.diff(np.sort(own.end_ns)), _SHORT)))
    parts = np.split(np.arange(len(pairs)), np.flatnonzero(np.abs(np.diff(distance)) > off) + 1)
    # Between pairs that are off by a call the distance moves as the intervals between calls do.
    still = np.abs(np.diff(distance)) <= _AS_BEFORE_NS[-1]
    longest = max(parts, key=lambda part: (int(still[part[:-1]].sum()), len(part)))
    middle = float(np.median(distance[longest]))
    drifted = _MOST_DRIFT * np.abs(own.end_ns[pairs.own] - own.end_ns[pairs.own[longest[0]]])
    kept: NDArray[np.bool_] = np.abs(distance - middle) <= off + drifted
    return kept


def _by_shift(own: Calls, other: Calls, by_step: Pairs) -> Pairs | None:
    """Pair calls a constant number apart: the shift with which most ends keep their distance.

    Calls of steps that agree (``by_step``) only give way to a shift that is clearly better.
    """
    found = _candidates(own, other)
    if not found:
        return None
    found.sort(key=lambda one: (-one.steady, abs(one.distance_ns)))
    best = found[0]
    if len(by_step):
        steady = _steadiness(by_step, own, other)
        return best.pairs if best.steady >= max(_HALF, _CLEARLY * steady) else None
    rivals = [one for one in found if one.steady * _CLEARLY >= best.steady]
    if len(rivals) == 1 and best.steady >= _HALF:
        return best.pairs
    return _nearest(found if best.steady < _HALF else rivals)


def _nearest(rivals: list[_Candidate]) -> Pairs | None:
    """Choose the one that ends at the same moment, as on a common clock, if no other is anywhere near."""
    rivals = sorted(rivals, key=lambda one: abs(one.distance_ns))
    nearest = abs(rivals[0].distance_ns)
    is_alone = len(rivals) == 1 or _MUCH_NEARER * nearest < abs(rivals[1].distance_ns)
    return rivals[0].pairs if nearest < _COMMON_CLOCK_NS and is_alone else None


def _steadiness(pairs: Pairs, own: Calls, other: Calls) -> float:
    """Return how many of the distances are as the one before, the mean over what that may mean."""
    sure = own.together[pairs.own]
    jumps = np.abs(np.diff(pairs.distance_ns(own, other)[sure]))
    return float(np.mean([(jumps <= near).mean() for near in _AS_BEFORE_NS])) if jumps.size else 0.0


def _candidates(own: Calls, other: Calls) -> list[_Candidate]:
    """Return the shifts with which at least half of the calls agree that both have."""
    mine, theirs = own.number - own.number[0], other.number - other.number[0]
    span = int(max(mine[-1], theirs[-1])) + 1
    if span > 4 * (len(own) + len(other)) + 64:  # numbers that are none
        mine, theirs = np.arange(len(own)), np.arange(len(other))
    at = np.full(int(theirs[-1]) + 1, ABSENT)
    at[theirs] = np.arange(len(other))
    fewest = (min(len(own), len(other)) + 1) // 2
    found = []
    for shift in _rough(own, other, mine, at, fewest):
        pairs = _shifted(mine, at, shift)
        agree = own.signature[pairs.own] == other.signature[pairs.other]
        pairs = Pairs(pairs.own[agree], pairs.other[agree])
        if len(pairs) >= fewest:
            distance = float(np.median(pairs.distance_ns(own, other)))
            found.append(_Candidate(pairs, _steadiness(pairs, own, other), distance))
    return found


def _rough(own: Calls, other: Calls, mine: Int64, at: Int64, fewest: int) -> list[int]:
    """Return the shifts worth a look: a sample of calls agrees, and ends keep their distance, or are near."""
    shifts = np.arange(-int(mine[-1]), at.size)
    sample = np.unique(np.linspace(0, len(own) - 1, _SAMPLE).astype(np.int64))
    place = mine[sample][None, :] + shifts[:, None]
    inside = (place >= 0) & (place < at.size)
    there = np.where(inside, at[np.where(inside, place, 0)], ABSENT)
    known = there != ABSENT
    agree = own.signature[sample][None, :] == other.signature[there]
    enough = known.sum(axis=1) >= max(1, fewest * sample.size // len(own) - 1)
    possible = (agree.sum(axis=1) >= _HALF * known.sum(axis=1)) & enough
    kept, known = shifts[possible], (known & agree)[possible]
    if not kept.size:
        return []
    distance = (own.end_ns[sample][None, :] - other.end_ns[there])[possible].astype(np.float64)
    distance[~known | ~own.together[sample][None, :]] = np.nan
    jumps = np.abs(np.diff(distance, axis=1))
    steady = sum((jumps <= near).sum(axis=1) for near in _AS_BEFORE_NS) / np.maximum(
        (~np.isnan(jumps)).sum(axis=1), _FEW
    )
    near = np.where(np.isnan(distance), np.inf, np.abs(distance)).min(axis=1)
    order = (np.argsort(-steady, kind="stable"), np.argsort(near, kind="stable"))
    return [int(shift) for shift in kept[np.unique(np.r_[order[0][:_FINALISTS], order[1][:_FINALISTS]])]]


def _shifted(mine: Int64, at: Int64, shift: int) -> Pairs:
    place = mine + shift
    own = np.flatnonzero((place >= 0) & (place < at.size))
    other = at[place[own]]
    return Pairs(own[other != ABSENT], other[other != ABSENT])


def _spread(distance: Int64) -> float:
    """Return the median deviation from the line through the middles of both halves: clocks may drift."""
    if distance.size < 6:  # too few for a line
        return float(np.median(np.abs(distance - np.median(distance)))) if distance.size > 1 else 0.0
    half = distance.size // 2
    first, second = float(np.median(distance[:half])), float(np.median(distance[half:]))
    slope = (second - first) / (distance.size / 2)
    flat = distance - slope * np.arange(distance.size)
    return float(np.median(np.abs(flat - np.median(flat))))


def _with_the_rest(own: Calls, other: Calls, found: Pairs) -> Pairs:
    """Add calls that lie between or beside those found, and ended when they should have."""
    mine = np.setdiff1d(np.arange(len(own)), found.own, assume_unique=True)
    theirs = np.setdiff1d(np.arange(len(other)), found.other, assume_unique=True)
    if not mine.size or not theirs.size:
        return found
    order = np.argsort(found.own, kind="stable")
    distance = found.distance_ns(own, other)[order]
    expected = own.end_ns[mine] - np.interp(mine, found.own[order], distance).astype(np.int64)
    tolerance = max(_NEAR_NS, int(_WIDE * _spread(distance)))
    ends = other.end_ns[theirs]
    by_end = np.argsort(ends, kind="stable")
    low = np.searchsorted(ends[by_end], expected - tolerance, "left")
    high = np.searchsorted(ends[by_end], expected + tolerance, "right")
    only = np.flatnonzero(high - low == 1)
    partner = theirs[by_end[low[only]]]
    once = np.isin(
        partner, [p for p, n in zip(*np.unique(partner, return_counts=True), strict=True) if n == 1]
    )
    more = _alike(own, other, Pairs(mine[only][once], partner[once]))
    joined = Pairs(np.r_[found.own, more.own], np.r_[found.other, more.other])
    order = np.argsort(joined.own, kind="stable")
    ordered = Pairs(joined.own[order], joined.other[order])
    return ordered if (np.diff(ordered.other) > 0).all() else found
