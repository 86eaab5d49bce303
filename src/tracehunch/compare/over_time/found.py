"""What a test found in one series of values, by position in the series."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehunch.compare.over_time.model import Kind


@dataclass(frozen=True, slots=True)
class Found:
    """``cuts`` are where later levels of a step begin, ``odd`` the calls of turns and one-offs."""

    kind: Kind
    cuts: tuple[int, ...] = ()
    odd: tuple[int, ...] = ()
    every: int | None = None
    slope: float | None = None
    p: float | None = None
