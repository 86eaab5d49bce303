"""The roofline as an SVG: both axes logarithmic, no script needed; what is under the pointer is named."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.report.html.charts import chart
from tracehunch.report.html.escape import text
from tracehunch.report.html.roofline.labels import Circle, drawn_labels
from tracehunch.units import bandwidth, flop_rate, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.report.html.roofline.points import Point, Roof

_WIDTH: Final = 960
_HEIGHT: Final = 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 104, 24, 18, 48
_LARGEST: Final = 15.0  # radius in pixels
_SMALLEST: Final = 3.5
_LABELLED: Final = 12


@dataclass(frozen=True, slots=True)
class _Axes:
    """Logarithms to base ten of the ends of both axes."""

    left: float
    right: float
    bottom: float
    top: float

    def x(self, intensity: float) -> float:
        part = (math.log10(intensity) - self.left) / (self.right - self.left)
        return _LEFT + part * (_WIDTH - _LEFT - _RIGHT)

    def y(self, rate: float) -> float:
        part = (math.log10(rate) - self.bottom) / (self.top - self.bottom)
        return _HEIGHT - _BOTTOM - part * (_HEIGHT - _TOP - _BOTTOM)


def picture(points: Sequence[Point], roofs: Sequence[Roof]) -> str:
    """Return the chart; "" where nothing computes: zero has no place on a logarithmic axis."""
    placed = [(at, point) for at, point in enumerate(points, 1) if point.flops and point.flop_rate]
    if not placed:
        return ""
    axes = _axes([point for _, point in placed], roofs)
    drawn = "".join((*_grid(axes), *_roofs(axes, roofs), *_points(axes, placed)))
    label = f"Roofline: {len(placed)} kernels by FLOPs for each byte and FLOP/s, under the GPU's peaks"
    return chart("roofline", _WIDTH, _HEIGHT, label, drawn)


def _axes(points: Sequence[Point], roofs: Sequence[Roof]) -> _Axes:
    across = [point.intensity for point in points] + [roof.ridge for roof in roofs]
    up = [point.flop_rate for point in points] + [roof.flop_rate for roof in roofs]
    left, right = math.floor(math.log10(min(across) / 1.5)), math.log10(max(across) * 3)
    bottom, top = math.floor(math.log10(min(up) / 1.2)), math.log10(max(up) * 2)
    return _Axes(left, max(right, left + 1), bottom, max(top, bottom + 1))


def _grid(axes: _Axes) -> Iterator[str]:
    foot = _HEIGHT - _BOTTOM
    for power in range(math.ceil(axes.left), math.floor(axes.right) + 1):
        x = axes.x(10.0**power)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{foot}"/>'
        yield f'<text x="{x:.1f}" y="{foot + 18}" text-anchor="middle">{_power(power)}</text>'
    for power in range(math.ceil(axes.bottom), math.floor(axes.top) + 1):
        y = axes.y(10.0**power)
        yield f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{text(flop_rate(10.0**power))}</text>'
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    title = "FLOPs for each byte of memory traffic"
    yield f'<text x="{middle:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{title}</text>'


def _power(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:.{-power}f}"


def _roofs(axes: _Axes, roofs: Sequence[Roof]) -> Iterator[str]:
    if not roofs:
        return
    right, left = 10.0**axes.right, 10.0**axes.left
    highest = max(roofs, key=lambda roof: roof.flop_rate)
    start = max(left, 10.0**axes.bottom / highest.bandwidth)
    yield _line("memory", axes, (start, start * highest.bandwidth), (highest.ridge, highest.flop_rate))
    for roof in roofs:
        if roof.ridge < right:
            yield _line("peak", axes, (roof.ridge, roof.flop_rate), (right, roof.flop_rate))
        yield _label(axes, (right, roof.flop_rate), f"{roof.name} {flop_rate(roof.flop_rate)}")
    middle = math.sqrt(start * highest.ridge)
    yield _label(axes, (middle, middle * highest.bandwidth), bandwidth(highest.bandwidth))


def _label(axes: _Axes, end: tuple[float, float], said: str) -> str:
    """Return a text that ends left of and above a point."""
    x, y = axes.x(end[0]) - 5, axes.y(end[1]) - 5
    return f'<text class="roof" x="{x:.1f}" y="{y:.1f}" text-anchor="end">{text(said)}</text>'


def _line(css: str, axes: _Axes, start: tuple[float, float], end: tuple[float, float]) -> str:
    x1, y1, x2, y2 = axes.x(start[0]), axes.y(start[1]), axes.x(end[0]), axes.y(end[1])
    return f'<line class="{css}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _points(axes: _Axes, placed: Sequence[tuple[int, Point]]) -> Iterator[str]:
    """Draw the large ones first, so that the small ones lie on top; then the numbers of the first few."""
    longest = max(point.time_us for _, point in placed)
    circles = []
    for at, point in placed:
        radius = max(_LARGEST * math.sqrt(point.time_us / longest), _SMALLEST)
        x, y = axes.x(point.intensity), axes.y(point.flop_rate)
        circles.append(Circle(x, y, radius))
        said = (
            f"{at}. {point.op}: {point.name}\n{time_us(point.time_us)} a call, {flop_rate(point.flop_rate)}, "
            f"{bandwidth(point.bandwidth)}, {point.intensity:.3g} FLOP/byte"
        )
        css = "matrix" if point.on_matrix_units else "general"
        yield f'<g class="point {css}"><title>{text(said)}</title>'
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/></g>'
    numbers = [str(at) for at, _ in placed[:_LABELLED]]
    yield from drawn_labels(circles, numbers)
