"""Numbers beside points, where there is room for them: no two overlap, and none hides another point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LETTER: Final = 7.0  # pixels
_HEIGHT: Final = 12.0
_DIRECTIONS: Final = 12
_REACHES: Final = (3.0, 12.0, 22.0, 34.0, 48.0, 64.0)
"""How far from a point its number may be, the nearest first; from the second on, a line leads to it."""


@dataclass(frozen=True, slots=True)
class Circle:
    """A point as it is drawn, in pixels."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True, slots=True)
class _Box:
    left: float
    top: float
    width: float

    @property
    def middle(self) -> tuple[float, float]:
        return self.left + self.width / 2, self.top + _HEIGHT / 2

    def overlaps(self, other: _Box) -> bool:
        apart = self.left + self.width < other.left or other.left + other.width < self.left
        return not apart and abs(self.top - other.top) < _HEIGHT

    def hides(self, circle: Circle) -> bool:
        x = min(max(circle.x, self.left), self.left + self.width)
        y = min(max(circle.y, self.top), self.top + _HEIGHT)
        return math.hypot(x - circle.x, y - circle.y) < circle.radius


def drawn_labels(circles: Sequence[Circle], numbers: Sequence[str]) -> Iterator[str]:
    """Yield the numbers of the first circles as SVG; one without room is left out."""
    placed: list[_Box] = []
    for circle, number in zip(circles, numbers, strict=False):
        found = _place(circle, number, circles, placed)
        if found is None:
            continue
        box, led = found
        placed.append(box)
        x, y = box.middle
        if led:
            yield f'<line class="lead" x1="{circle.x:.1f}" y1="{circle.y:.1f}" x2="{x:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{number}</text>'


def _place(
    circle: Circle, number: str, circles: Sequence[Circle], placed: Sequence[_Box]
) -> tuple[_Box, bool] | None:
    width = _LETTER * len(number)
    for step, reach in enumerate(_REACHES):
        for turn in range(_DIRECTIONS):
            angle = 2 * math.pi * turn / _DIRECTIONS
            away = (
                circle.radius + reach + abs(math.cos(angle)) * width / 2 + abs(math.sin(angle)) * _HEIGHT / 2
            )
            x, y = circle.x + away * math.cos(angle), circle.y - away * math.sin(angle)
            box = _Box(x - width / 2, y - _HEIGHT / 2, width)
            if not any(map(box.overlaps, placed)) and not any(map(box.hides, circles)):
                return box, step > 0
    return None
