"""Whether a difference is more than what calls and runs differ by anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.compare.model import Outcome, Spread

if TYPE_CHECKING:
    from tracehunch.facts.model import Fact

GPU_MARGIN: Final = 0.03
HOST_MARGIN: Final = 0.10
"""What the same work differs by between two runs on one machine, beyond the spread of the calls of either:
clocks and temperature on a GPU, everything else that the machine does on the host."""

ALONE: Final = 2.0
"""How much wider the margin is where one call says nothing of a spread."""

GPU_FLOOR_US: Final = 0.3
HOST_FLOOR_US: Final = 2.0
"""The same for work so short that the steps of the clock and a cold cache are all of it; per activity."""

_GPU_TIMES: Final = ("gpu_time", "gpu_busy", "copy_time")
_RATIO_MARGIN: Final = 0.05
_RATE_MARGIN: Final = 0.05
_MOST_FLOORS: Final = 10


def differ(before: Spread, after: Spread, *, on_gpu: bool, n: float = 1) -> bool:
    """Tell whether two times are apart by more than spreads and margin; ``n``: activities a call."""
    gap = max(after.low - before.high, before.low - after.high)
    margin = (GPU_MARGIN if on_gpu else HOST_MARGIN) * (ALONE if min(before.calls, after.calls) == 1 else 1)
    floor = (GPU_FLOOR_US if on_gpu else HOST_FLOOR_US) * min(max(n, 1), _MOST_FLOORS)
    return gap > max(margin * min(before.value, after.value), floor)


def outcome_of(before: Fact | None, after: Fact | None, calls: tuple[int, int]) -> Outcome:
    """Compare one fact of two traces, of so many calls each."""
    if before is None or after is None:
        return "unknown"
    first, second = before.value, after.value
    if not isinstance(first, int | float) or not isinstance(second, int | float):
        return "same" if _words(first) == _words(second) else "other"
    if first == second and (before.low, before.high) == (after.low, after.high):
        return "same"
    if not _apart(before, after, calls):
        return "same" if first == second else "noise"
    return "more" if second > first else "less"


def spread_of(fact: Fact, calls: int) -> Spread:
    """Return a number's value with its extremes."""
    value = fact.value if isinstance(fact.value, int | float) else 0.0
    low, high = fact.low, fact.high
    return Spread(value, value if low is None else low, value if high is None else high, calls)


def _apart(before: Fact, after: Fact, calls: tuple[int, int]) -> bool:
    first, second = spread_of(before, calls[0]), spread_of(after, calls[1])
    gap = max(second.low - first.high, first.low - second.high)
    if before.unit == "us":
        return differ(first, second, on_gpu=before.key in _GPU_TIMES)
    if before.unit in ("ratio", "percent"):
        return gap > _RATIO_MARGIN * (100 if before.unit == "percent" else 1)
    if before.unit.endswith("/s"):
        return gap > _RATE_MARGIN * max(first.value, second.value)
    return gap > 0


def _words(value: object) -> frozenset[str]:
    return frozenset(map(str, value)) if isinstance(value, tuple) else frozenset([str(value)])
