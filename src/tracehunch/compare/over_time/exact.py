"""Values that are exact (counts, bytes, texts): every change of them is one, of some kind."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Final

from tracehunch.compare.over_time.found import Found

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

_FEWEST: Final = 3  # calls that make a level; fewer are one-offs
_MOST_ODD: Final = 0.1  # share of the calls that may be one-offs
_MOST_LEVELS: Final = 5
_TURNS: Final = 3  # times that a pattern must come round
_LONGEST: Final = 64  # calls of a pattern
_RISING: Final = 4  # distinct values that make a trend


def examine(values: Sequence[Hashable], numbers: Sequence[int]) -> Found:
    """Say what becomes of exact values in order of time; ``numbers`` count all calls."""
    if len(values) < _FEWEST:
        return Found("constant" if len(set(values)) <= 1 else "too-few")
    if len(set(values)) == 1:
        return Found("constant")
    return _rising(values) or _turns(values, numbers) or _levels(values) or Found("varies")


def _rising(values: Sequence[Hashable]) -> Found | None:
    numbers = [one for one in values if isinstance(one, int | float)]
    if len(numbers) < len(values) or len(set(numbers)) < _RISING:
        return None
    steps = [later - earlier for earlier, later in pairwise(numbers)]
    # most of the calls take part: a few large jumps are levels
    moves = sum(1 for one in steps if one) >= len(steps) / 2
    if not moves or not (min(steps) >= 0 or max(steps) <= 0):
        return None
    return Found("trend", slope=(numbers[-1] - numbers[0]) / len(steps))


def _turns(values: Sequence[Hashable], numbers: Sequence[int]) -> Found | None:
    for every in range(2, min(len(values) // _TURNS, _LONGEST) + 1):
        of_phase: dict[int, Hashable] = {}
        rhythm = all(
            of_phase.setdefault(number % every, value) == value
            for number, value in zip(numbers, values, strict=True)
        )
        if rhythm:
            usual = _usual(values)
            odd = tuple(at for at, one in enumerate(values) if one != usual)
            return Found("turns", odd=odd, every=every) if len(odd) >= _TURNS else None
    return None


def _levels(values: Sequence[Hashable]) -> Found | None:
    """Levels with one-offs among them; None where there is no order in time."""
    smooth, odd = _without_odd(values)
    runs = _runs(smooth)
    if len(odd) > max(1, _MOST_ODD * len(values)) or len(runs) > _MOST_LEVELS:
        return None
    if len(runs) == 1:
        return Found("one-off", odd=odd)
    if any(n < _FEWEST for _, n in runs):
        return None
    cuts, at = [], 0
    for _, n in runs[:-1]:
        at += n
        cuts.append(at)
    return Found("step", cuts=tuple(cuts), odd=odd)


def _without_odd(values: Sequence[Hashable]) -> tuple[list[Hashable], tuple[int, ...]]:
    """Put what lies around them in the place of short runs; also return where those are."""
    smooth, odd = list(values), []
    at = 0
    for _, n in _runs(values):
        run = range(at, at + n)
        at += n
        if n >= _FEWEST:
            continue
        before = smooth[run.start - 1] if run.start else None
        after = values[at] if at < len(values) else before
        if run.start == 0 or before == after or at == len(values):
            fill = after if run.start == 0 else before
            smooth[run.start : run.stop] = [fill] * n
            odd += list(run)
    return smooth, tuple(odd)


def _usual(values: Sequence[Hashable]) -> Hashable:
    counted: dict[Hashable, int] = {}
    for one in values:
        counted[one] = counted.get(one, 0) + 1
    return max(counted, key=lambda one: counted[one])


def _runs(values: Sequence[Hashable]) -> list[tuple[Hashable, int]]:
    return [(value, len(list(run))) for value, run in groupby(values)]
