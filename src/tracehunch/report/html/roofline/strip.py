"""Kernels for which no FLOPs are counted (elementwise, norms, copies): bandwidth beside the memory's peak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.html.charts import chart
from tracehunch.report.html.escape import text
from tracehunch.units import bandwidth, elide, percent, plural, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.report.html.roofline.points import Point

_WIDTH: Final = 960
_LABEL: Final = 250
_VALUE: Final = 210
_ROW: Final = 24
_TOP: Final = 20
_MOST: Final = 12
_LETTERS: Final = 32


def strip(points: Sequence[Point], peak: float | None) -> str:
    """Return a bar for each, the most time first; "" where all have FLOPs. `peak` is in bytes a second.

    A bar beyond the peak is drawn as it is: what lies in a cache comes faster than memory gives it.
    """
    moving = [(at, point) for at, point in enumerate(points, 1) if not (point.flops and point.flop_rate)]
    if not moving:
        return ""
    shown = moving[:_MOST]
    most = max([peak or 0.0, *(point.bandwidth for _, point in shown)])
    scale = (_WIDTH - _LABEL - _VALUE) / most
    height = _TOP + _ROW * len(shown) + 4
    rows = "".join(_row(line, at, point, scale, peak) for line, (at, point) in enumerate(shown))
    said = "Memory-bound kernels, by the bandwidth they reach"
    rest = len(moving) - len(shown)
    more = f" {rest} of them are only in the table." if rest else ""
    why = (
        f"{plural(len(moving), 'kernel')} without FLOPs to count, which only products, convolutions and "
        f"attention have: elementwise work, norms, copies.{more}"
    )
    label = f"{said}; the numbers are in the table below"
    drawn = chart("roofline", _WIDTH, height, label, _peak(peak, scale, height) + rows)
    return f'<h3>{said}</h3><p class="dim">{text(why)}</p>{drawn}'


def _row(line: int, at: int, point: Point, scale: float, peak: float | None) -> str:
    top = _TOP + line * _ROW
    end = _LABEL + max(point.bandwidth * scale, 1.0)
    of_peak = f", {percent(100 * point.bandwidth / peak)} of the peak" if peak else ""
    reached = f"{bandwidth(point.bandwidth)}{of_peak}"
    said = f"{at}. {point.op}: {point.name}\n{time_us(point.time_us)} a call, {reached}"
    label = elide(f"{at}. {point.op or point.name}", _LETTERS)
    return (
        f'<g class="point moving"><title>{text(said)}</title>'
        f'<text x="{_LABEL - 8}" y="{top + 15}" text-anchor="end">{text(label)}</text>'
        f'<rect x="{_LABEL}" y="{top + 4}" width="{end - _LABEL:.1f}" height="{_ROW - 10}"/>'
        f'<text x="{end + 8:.1f}" y="{top + 15}">{text(reached)}</text></g>'
    )


def _peak(peak: float | None, scale: float, height: int) -> str:
    if peak is None:
        return ""
    x = _LABEL + peak * scale
    return (
        f'<line class="peak" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{height - 4}"/>'
        f'<text class="roof" x="{x:.1f}" y="{_TOP - 6}" text-anchor="end">peak {text(bandwidth(peak))}</text>'
    )
