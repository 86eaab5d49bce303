"""The calls on both sides of a change: what they launched, how long it took, and what else was watched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.over_time.calls import BLOCKS, ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.over_time.model import Cycle, Drift, Level, Shift
    from tracehunch.compare.over_time.series import Points

WORK: Final = {"flops": "FLOPs", BLOCKS: "thread blocks", ELEMENTS: "input elements", "hbm_bytes": "bytes"}
"""What tells how much there is to do, and its name."""
CHANGED: Final = 0.02
"""Share from which on an amount of work is another."""


@dataclass(frozen=True, slots=True)
class Side:
    """What a call did on one side of a change: names with counts and times per call, and values."""

    count: Mapping[str, float]
    time_us: Mapping[str, float]
    values: Mapping[str, float]
    cycles: Sequence[Cycle]
    alone_us: Mapping[str, float]  # as time_us, of kernels that run beside no collective in nearly all calls


@dataclass(frozen=True, slots=True)
class Scene:
    """A shift and the calls on both sides of it."""

    shift: Shift
    before: Side
    after: Side
    on_gpu: bool

    def drift(self, key: str) -> Drift | None:
        """Return the drift of a fact, if it is part of the shift."""
        return next((one for one in self.shift.drifts if one.key == key), None)

    def grew(self, key: str) -> float:
        """Return how much a value grew, in its unit; 0 where it is not known on both sides."""
        if key not in self.before.values or key not in self.after.values:
            return 0.0
        return self.after.values[key] - self.before.values[key]

    def times(self, key: str) -> float:
        """Return later over earlier value; 1 where it cannot be told."""
        first = self.before.values.get(key, 0.0)
        return self.after.values.get(key, first) / first if first else 1.0

    @property
    def same_names(self) -> bool:
        """Whether the same kernels (ops) ran as often."""
        return self.before.count.keys() == self.after.count.keys() and all(
            abs(self.after.count[name] - n) <= CHANGED * n for name, n in self.before.count.items()
        )

    @property
    def same_ops(self) -> bool:
        """Whether the program called the same ops, whatever kernels these launched."""
        if "leaf_ops" in self.before.values and "leaf_ops" in self.after.values:
            return not self.grew("leaf_ops")
        return self.same_names

    @property
    def size_known(self) -> bool:
        """Whether the trace tells how much there was to do."""
        return any(key in self.before.values for key in WORK)

    @property
    def grown(self) -> dict[str, float]:
        """How many times as much there is to do, by what tells it."""
        return {key: self.times(key) for key in WORK if abs(self.times(key) - 1) > CHANGED}

    @property
    def same_work(self) -> bool:
        """Whether nothing says that there was more to do."""
        return self.same_names and all(abs(self.times(key) - 1) <= CHANGED for key in WORK)


def scene_of(shift: Shift, points: Points, cycles: Sequence[Cycle]) -> Scene:
    """Return a shift with its first and its last level's calls."""
    levels = shift.drifts[0].levels
    before, after = (_side(points, cycles, level) for level in (levels[0], levels[-1]))
    return Scene(shift, before, after, any(cycle.on_gpu for cycle in cycles))


def _side(points: Points, cycles: Sequence[Cycle], level: Level) -> Side:
    low = int(np.searchsorted(points.call, level.first.call))
    high = int(np.searchsorted(points.call, level.last.call)) + 1
    last_call = int(points.call[high]) - 1 if high < len(points) else None
    count, times = _uses(cycles, points.name, level.first.call, last_call)
    values = {
        key: float(np.nanmedian(some[low:high]))
        for key, some in points.numbers.items()
        if not np.isnan(some[low:high]).all()
    }
    alone = {
        name: float(np.nanmedian(some[low:high]))
        for name, some in points.alone_us.items()
        if not np.isnan(some[low:high]).all()
    }
    mine = cycles[level.first.cycle : level.last.cycle + 1]
    return Side(count, times, values, mine, alone)


def _uses(
    cycles: Sequence[Cycle], scope: str, first: int, last: int | None
) -> tuple[dict[str, float], dict[str, float]]:
    """Return per name how often it ran in a call and how long (us), over calls ``first`` to ``last``."""
    count: dict[str, float] = {}
    times: dict[str, float] = {}
    seen = before = 0
    for cycle in cycles:
        calls = cycle.scopes.get(scope)
        if calls is None:
            continue
        low, high = first - 1 - before, len(calls) if last is None else last - before
        before += len(calls)
        low, high = max(low, 0), min(high, len(calls))
        if low >= high:
            continue
        seen += high - low
        mine = slice(*np.searchsorted(calls.uses.call, [low, high]))
        size_ = len(calls.uses.names)
        n = np.bincount(calls.uses.name[mine], weights=calls.uses.count[mine], minlength=size_)
        ns = np.bincount(calls.uses.name[mine], weights=calls.uses.time_ns[mine], minlength=size_)
        for name, times_run, length in zip(calls.uses.names, n.tolist(), ns.tolist(), strict=True):
            if times_run:
                count[name] = count.get(name, 0.0) + times_run
                times[name] = times.get(name, 0.0) + length / 1e3
    return {k: v / seen for k, v in count.items()}, {k: v / seen for k, v in times.items()}
