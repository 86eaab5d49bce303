"""A bar for each variant: what a forward takes, and beside it the range that the expert guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.html.charts import chart
from tracehunch.report.html.escape import text
from tracehunch.units import time_range_us, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.outcome import Outcome

_WIDTH: Final = 900
_LABEL: Final = 150
_VALUE: Final = 150
_ROW: Final = 30


def bars(outcomes: Sequence[Outcome]) -> str:
    """Return the picture; "" where nothing was timed. Bars start at zero."""
    timed = [one for one in outcomes if one.time_us]
    if not timed:
        return ""
    ranges = {one.variant.name: guessed_range_us(one) for one in timed}
    ends = [one.time_us or 0.0 for one in timed] + [
        high for found in ranges.values() if found for high in found
    ]
    scale = (_WIDTH - _LABEL - _VALUE) / max(ends)
    rows = "".join(_row(at, one, ranges[one.variant.name], scale) for at, one in enumerate(timed))
    height = _ROW * len(timed) + 4
    drawn = any(ranges.values())
    below = (
        '<p class="dim">The bracket is the range that the expert guessed before the look.</p>'
        if drawn
        else ""
    )
    label = "Time of a forward by variant; the numbers are in the table below"
    return chart("bars", _WIDTH, height, label, rows) + below


def guessed_range_us(outcome: Outcome) -> tuple[float, float] | None:
    """Return the range of GPU time that the expert claimed, in microseconds."""
    claims = () if outcome.expert is None else outcome.expert.guess.claims
    found = [one.expected for one in claims if one.key == "gpu_time" and one.relation == "in"]
    if not found or not isinstance(found[0], tuple):
        return None
    low, high = found[0]
    return float(low), float(high)


def _row(at: int, outcome: Outcome, guessed: tuple[float, float] | None, scale: float) -> str:
    took = outcome.time_us or 0.0
    top, middle = at * _ROW + 6, at * _ROW + _ROW // 2 + 2
    end = took * scale
    right = max(end, guessed[1] * scale if guessed else 0.0)
    said = f"{outcome.variant.name}: {time_us(took)}"
    if guessed:
        said += f", the expert guessed {time_range_us(*guessed)}"
    parts = [
        f"<g><title>{text(said)}</title>",
        f'<text x="{_LABEL - 8}" y="{middle + 4}" text-anchor="end">{text(outcome.variant.name)}</text>',
        f'<rect class="seen" x="{_LABEL}" y="{top}" width="{max(end, 1):.1f}" height="{_ROW - 12}"/>',
    ]
    if guessed:
        parts.append(_bracket(_LABEL + guessed[0] * scale, _LABEL + guessed[1] * scale, middle))
    parts.append(f'<text x="{_LABEL + right + 8:.1f}" y="{middle + 4}">{text(time_us(took))}</text></g>')
    return "".join(parts)


def _bracket(left: float, right: float, middle: float) -> str:
    return (
        f'<path class="guess" d="M{left:.1f} {middle - 8}v16M{left:.1f} {middle}H{right:.1f}'
        f'M{right:.1f} {middle - 8}v16"/>'
    )
