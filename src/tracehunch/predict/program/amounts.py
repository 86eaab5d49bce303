"""Sums over calls: counts that are known, and a range of time that is no plain sum of lows and highs.

Calls of one op err together: what is wrong with one is wrong with all. So their ranges are added. Ops err
independently of each other: their distances from the middle add as squares do. What they have in common (the
GPU's clock, the other machine) is added on top.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from tracehunch.predict.activities import Activities, TimeRange
from tracehunch.predict.program.model import Amounts, CallGuess, WorkBound

COMMON: Final = 0.05
"""Share of the time by which all calls err together: clocks of H200s under load differ by so much."""

SPREAD: Final = (
    "ranges of calls of one op are added, those of different ops as independent errors (root of the sum of "
    f"squares), and {COMMON:.0%} that all have in common"
)
"""How the range of a sum is made."""


def amounts(calls: Iterable[CallGuess]) -> Amounts:
    """Return the sums over whole calls."""
    found = list(calls)
    summed = added([one.activities for one in found], [one.call.op for one in found])
    roof = [one.roofline_us for one in found if one.roofline_us is not None]
    return _with_roof(summed, sum(roof) if roof else None, dominant(found))


def added(parts: Sequence[Activities], ops: Sequence[str]) -> Amounts:
    """Return the sums over activities; `ops` are whose they are."""
    known = [one for one in parts if told(one)]
    times: dict[str, list[TimeRange]] = defaultdict(list)
    for one, op in zip(parts, ops, strict=True):
        if one.time is not None:
            times[op].append(one.time)
    return Amounts(
        calls=len(parts),
        kernels=sum(len(one.kernels or ()) for one in parts),
        copies=sum(len(one.copies or ()) for one in parts),
        memsets=sum(one.memsets or 0 for one in parts),
        time=together([total_range(each) for each in times.values()]),
        flops=sum(one.flops for one in parts),
        bytes=sum(one.bytes for one in parts),
        untold=len(parts) - len(known),
        untimed=sum(one.time is None and not one.empty for one in parts),
    )


def told(found: Activities) -> bool:
    """Whether all counts are known."""
    return found.kernels is not None and found.copies is not None and found.memsets is not None


def total_range(times: Sequence[TimeRange]) -> TimeRange:
    """Return the sum of times that err together."""
    return TimeRange(
        math.fsum(one.low_us for one in times),
        math.fsum(one.mid_us for one in times),
        math.fsum(one.high_us for one in times),
    )


def together(times: Sequence[TimeRange]) -> TimeRange | None:
    """Return the sum of times that err independently; None for no times."""
    if not times:
        return None
    middle = math.fsum(one.mid_us for one in times)
    below = math.sqrt(math.fsum((one.mid_us - one.low_us) ** 2 for one in times)) + COMMON * middle
    above = math.sqrt(math.fsum((one.high_us - one.mid_us) ** 2 for one in times)) + COMMON * middle
    return TimeRange(max(middle - below, 0.0), middle, middle + above)


def dominant(calls: Iterable[CallGuess]) -> WorkBound | None:
    """Return what limits the calls that take most of the time; None where that is not known."""
    weight: Counter[WorkBound] = Counter()
    for one in calls:
        if one.bound is not None and one.activities.time is not None:
            weight[one.bound] += round(one.activities.time.mid_us * 1000)  # nanoseconds
    return weight.most_common(1)[0][0] if weight else None


def _with_roof(found: Amounts, roofline_us: float | None, bound: WorkBound | None) -> Amounts:
    return Amounts(
        found.calls, found.kernels, found.copies, found.memsets, found.time, found.flops, found.bytes,
        roofline_us, bound, found.untold, found.untimed,
    )  # fmt: skip
