"""Since when a rank is late, and how regularly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_FEW = 2
_NEARLY_ALL = 0.8


@dataclass(frozen=True, slots=True)
class Since:
    """The units in which a rank was late: ``first`` is the first of them, ``late`` tells of each unit."""

    first: int
    late: NDArray[np.bool_]
    steps: tuple[int | None, ...]

    @property
    def number(self) -> int:
        """In how many units it was late."""
        return int(self.late.sum())

    @property
    def part(self) -> float:
        """Part of all units in which it was late."""
        return self.number / max(self.late.size, 1)

    @property
    def steadiness(self) -> float:
        """Part of the units from the first on in which it was late."""
        return self.number / max(self.late.size - self.first, 1)

    @property
    def begins_late(self) -> bool:
        """Whether there was a time before it."""
        return self.first > 0

    def phrase(self) -> str:
        """``throughout``, ``from step 12 on, in every second step``, ``in step 7 only``."""
        unit = "collective" if self.steps[self.first] is None else "step"
        name = f"{unit} {self._name(self.first)}"
        if self.number == 1 and self.late.size > 1:
            return f"in {name} only"
        start = f"from {name} on" if self.begins_late else "throughout"
        if self.steadiness >= _NEARLY_ALL:
            return start
        every = self._every()
        if every:
            often = f"in every {every} {unit}"
        else:
            often = f"in {self.number} of {plural(self.late.size - self.first, unit)}"
        return f"{start}, {often}" if self.begins_late else often

    def _name(self, unit: int) -> int:
        step = self.steps[unit]
        return unit + 1 if step is None else step

    def _every(self) -> str:
        gaps = set(np.diff(np.flatnonzero(self.late)).tolist())
        if len(gaps) != 1 or self.number <= _FEW:
            return ""
        gap = gaps.pop()
        return {1: "", 2: "second", 3: "third"}.get(gap, f"{gap}th")


def since(extra: NDArray[np.float64], least: float, steps: Sequence[int | None]) -> Since | None:
    """Return when it was late by at least ``least`` and a third of what it mostly is then; None: never."""
    largest = np.sort(extra)[::-1][: max(1, extra.size // 3)]
    late = extra >= max(least, float(np.median(largest)) / 3)
    if not late.any():
        return None
    found = Since(int(np.argmax(late)), late, tuple(steps))
    ever = Since(int(np.argmax(extra >= least)), extra >= least, tuple(steps))
    return ever if found.steadiness < _NEARLY_ALL <= ever.steadiness else found
