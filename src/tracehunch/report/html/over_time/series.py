"""One fact over the run as a small picture: steps across, a line for each rank, where the change begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.report.html.escape import text
from tracehunch.report.html.over_time.marks import marks
from tracehunch.report.over_time_facts import change_of, name_of, value_text
from tracehunch.units import count, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.model import Drift, Place

_WIDTH: Final = 340
_HEIGHT: Final = 130
_DIGIT: Final = 6.2  # width of a character of the axis
_WIDEST: Final = 96
_RIGHT: Final = 334
_TOP: Final = 22
_BOTTOM: Final = 112
_MARKS: Final = 16  # on a line; of more points every k-th has one
_TICKS: Final = 40
_FROM_ZERO: Final = 0.5
"""Share of the highest value up to which the lowest may reach for the picture to begin at 0."""
_ROOM: Final = 30  # half of what the mark's words take
LINES: Final = 8
"""Ranks with a line each; of more the range is filled, and the worst has a line."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one rank shows; ``number`` says how it is drawn."""

    label: str
    number: int
    drift: Drift


@dataclass(frozen=True, slots=True)
class _Scale:
    first: int
    last: int
    low: float
    high: float
    left: float  # of it the ends of the upright axis are written

    def x(self, at: float) -> float:
        return self.left + (at - self.first) / max(self.last - self.first, 1) * (_RIGHT - self.left)

    def y(self, value: float) -> float:
        return _BOTTOM - (value - self.low) / ((self.high - self.low) or 1.0) * (_BOTTOM - _TOP)


_Points = list[tuple[int, float]]


def series_chart(lines: Sequence[Line], place: Place | None) -> str:
    """Return the picture of the ranks' lines, the worst first; "" where there is nothing to draw.

    ``place`` is where the change begins, None where it is everywhere.
    """
    lead = lines[0].drift
    found = [(line, _points(line.drift, lead.series_by)) for line in lines]
    found = [(line, points) for line, points in found if points]
    if not lead.series_at or not found:
        return ""
    scale = _scale([points for _, points in found], lead.unit)
    drawn = [_frame(scale, lead), _begins(scale, lead, place), _odd(scale, lead)]
    if len(found) > LINES:
        drawn.append(_range([points for _, points in found[1:]], scale))
        found = found[:1]
    found.sort(key=lambda pair: pair[0].number)  # the broken lines upon the whole one
    drawn += [_line(line, points, scale) for line, points in found]
    return (
        f'<svg class="over" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{text(_said(lines, place))}">{"".join(drawn)}</svg>'
    )


def _points(drift: Drift, by: str) -> _Points:
    """Return (step or call, value); of a constant its first and last call."""
    if drift.series_at:
        known = zip(drift.series_at, drift.series, strict=True) if drift.series_by == by else ()
        return [(at, value) for at, value in known if value is not None]
    if not drift.series or not drift.levels:
        return []
    ends = [_at(one, by) for one in (drift.levels[0].first, drift.levels[-1].last)]
    return [(one, drift.series[0] or 0.0) for one in dict.fromkeys(ends) if one is not None]


def _at(place: Place, by: str) -> int | None:
    return place.step if by == "step" else place.call


def _scale(lines: Sequence[_Points], unit: str) -> _Scale:
    ats = [at for points in lines for at, _ in points]
    values = [value for points in lines for _, value in points]
    low, high = min(values), max(values)
    if 0 <= low <= _FROM_ZERO * high:
        low = 0.0
    if low == high:
        low, high = min(low, 0.0), max(high, 0.0)
    longest = max(len(value_text(unit, value)) for value in (low, high))
    return _Scale(min(ats), max(ats), low, high, min(longest * _DIGIT + 11, _WIDEST))


def _frame(scale: _Scale, lead: Drift) -> str:
    """Return the axes with their ends: highest and lowest value, first and last step."""
    high, low = (value_text(lead.unit, value) for value in (scale.high, scale.low))
    left = f"{scale.left:.1f}"
    beside = f"{scale.left - 7:.1f}"
    return (
        f'<path class="axis" d="M{left} {_TOP}H{_RIGHT}M{left} {_BOTTOM}H{_RIGHT}"/>'
        f'<text x="{beside}" y="{_TOP + 4}" text-anchor="end">{text(high)}</text>'
        f'<text x="{beside}" y="{_BOTTOM + 4}" text-anchor="end">{text(low)}</text>'
        f'<text x="{left}" y="{_HEIGHT - 3}">{lead.series_by} {count(scale.first)}</text>'
        f'<text x="{_RIGHT}" y="{_HEIGHT - 3}" text-anchor="end">{count(scale.last)}</text>'
    )


def _begins(scale: _Scale, lead: Drift, place: Place | None) -> str:
    """Return the mark of where the change begins, with its step."""
    at = None if place is None else _at(place, lead.series_by)
    if at is None or not scale.first <= at <= scale.last:
        return ""
    x = scale.x(at)
    anchor = "end" if x > _WIDTH - _ROOM else "middle"
    return (
        f'<path class="begins" d="M{x:.1f} 14V{_BOTTOM}"/>'
        f'<text class="when" x="{x:.1f}" y="10" text-anchor="{anchor}">{lead.series_by} {count(at)}</text>'
    )


def _odd(scale: _Scale, lead: Drift) -> str:
    """Return a mark under each of the calls that take turns; of a step nothing, it has its own."""
    if lead.kind != "turns":
        return ""
    ats = [at for place in lead.at[:_TICKS] if (at := _at(place, lead.series_by)) is not None]
    return f'<path class="turn" d="{"".join(f"M{scale.x(at):.1f} {_BOTTOM}v5" for at in ats)}"/>'


def _line(line: Line, points: _Points, scale: _Scale) -> str:
    places = [(scale.x(at), scale.y(value)) for at, value in points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    every = -(-len(places) // _MARKS)
    marked = places[line.number % every :: every]  # lines that lie on each other show both marks
    said = f"{line.label or 'this run'}: {_levels(line.drift)}"
    return (
        f'<g class="r{line.number}"><title>{text(said)}</title><path class="line" d="M{path}"/>'
        f'<path class="mark" d="{marks(line.number, marked)}"/></g>'
    )


def _range(lines: Sequence[_Points], scale: _Scale) -> str:
    """Return what lies between the lowest and the highest of many ranks, at each step that they have."""
    by_at: dict[int, list[float]] = {}
    for points in lines:
        for at, value in points:
            by_at.setdefault(at, []).append(value)
    ats = sorted(at for at, values in by_at.items() if 2 * len(values) > len(lines)) or sorted(by_at)
    upper = [f"{scale.x(at):.1f} {scale.y(max(by_at[at])):.1f}" for at in ats]
    lower = [f"{scale.x(at):.1f} {scale.y(min(by_at[at])):.1f}" for at in reversed(ats)]
    return (
        f'<path class="range" d="M{"L".join([*upper, *lower])}Z">'
        f"<title>from the lowest to the highest of {count(len(lines))} other ranks</title></path>"
    )


def _levels(drift: Drift) -> str:
    if len(drift.levels) > 1 and drift.kind not in ("varies", "too-few"):
        return change_of(drift)
    return f"{value_text(drift.unit, drift.levels[0].value)} throughout" if drift.levels else "unknown"


def _said(lines: Sequence[Line], place: Place | None) -> str:
    """Return what the picture shows, for those who do not see it."""
    lead = lines[0].drift
    at = None if place is None else _at(place, lead.series_by)
    since = "" if at is None else f"; the change begins at {lead.series_by} {count(at)}"
    told = [f"{line.label} {_levels(line.drift)}".strip() for line in lines[:LINES]]
    more = [f"{len(lines) - LINES} more ranks"] if len(lines) > LINES else []
    return f"{name_of(lead)} over the run: {join([*told, *more])}{since}"
