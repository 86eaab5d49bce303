"""A bar for each rank: compute, communication alone, copies, idle; of many ranks, neighbours together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.html.charts import chart
from tracehunch.report.html.escape import text
from tracehunch.report.ranks_bars import PARTS, parts_ns
from tracehunch.report.ranks_rows import has_breakdown
from tracehunch.report.ranks_words import ranks_text
from tracehunch.units import share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.compare.ranks.model import RankRow

_WIDTH: Final = 900
_LABEL: Final = 60
_HEIGHT: Final = 768
_TALLEST: Final = 26
_LOWEST: Final = 3
_TOP: Final = 4
_MOST: Final = _HEIGHT // _LOWEST
_READABLE: Final = 14  # height from which on every bar has its rank, and shares stand in the bars
_LABELS_APART: Final = 16
_ROOM: Final = 34  # of a number in a bar
_CSS: Final = ("compute", "exposed", "copies", "idle")


def bars(rows: Sequence[RankRow]) -> str:
    """Return the picture with its legend; "" where no rank tells where its time went."""
    known = [row for row in rows if has_breakdown(row)]
    if not known:
        return ""
    groups = _groups(known)
    height = max(min(_HEIGHT // len(groups), _TALLEST), _LOWEST)
    longest = max(_mean(group, lambda row: row.window_ns) for group in groups)
    every = max(-(-_LABELS_APART // height), 1)
    drawn = "".join(
        _bar(group, _TOP + at * height, height, (_WIDTH - _LABEL) / longest, labelled=at % every == 0)
        for at, group in enumerate(groups)
    )
    label = "Where the time of each rank went; the numbers are in the table below"
    each = f"Each bar is the mean of {len(groups[0])} ranks. " if len(groups[0]) > 1 else ""
    return _legend(each) + chart("bars ranks", _WIDTH, height * len(groups) + _TOP + 6, label, drawn)


def _groups(rows: Sequence[RankRow]) -> list[Sequence[RankRow]]:
    size = -(-len(rows) // _MOST)
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def _mean(group: Sequence[RankRow], value: Callable[[RankRow], int]) -> float:
    return sum(value(row) for row in group) / len(group)


def _bar(group: Sequence[RankRow], top: int, height: int, scale: float, *, labelled: bool) -> str:
    parts = [sum(one) / len(group) for one in zip(*(parts_ns(row) for row in group), strict=True)]
    overlapped = _mean(group, lambda row: row.overlapped_ns)
    name = ranks_text(row.rank for row in group)
    shares = ", ".join(f"{part} {share(ns, sum(parts))}" for part, ns in zip(PARTS, parts, strict=True))
    said = f"{name}: {shares}; communication beside compute {share(overlapped, sum(parts))}"
    drawn = [f"<g><title>{text(said)}</title>"]
    gap = 3 if height >= _READABLE else 0
    if labelled:
        middle = top + height / 2 + 4
        drawn.append(f'<text x="{_LABEL - 8}" y="{middle:.1f}" text-anchor="end">{group[0].rank}</text>')
    left = float(_LABEL)
    for css, ns in zip(_CSS, parts, strict=True):
        wide = ns * scale
        if wide:
            drawn.append(
                f'<rect class="{css}" x="{left:.2f}" y="{top}" width="{wide:.2f}" height="{height - gap}"/>'
            )
        if css == "compute" and overlapped:
            drawn.append(_stripe(left + wide, overlapped * scale, top, height - gap))
        if height >= _READABLE and wide > _ROOM and css != "copies":
            drawn.append(_number(css, left + 5, top + height / 2 + 3, share(ns, sum(parts))))
        left += wide
    return "".join([*drawn, "</g>"])


def _number(css: str, x: float, y: float, said: str) -> str:
    return f'<text class="in {css}-text" x="{x:.1f}" y="{y:.1f}">{text(said)}</text>'


def _stripe(right: float, wide: float, top: int, height: int) -> str:
    """Return communication beside compute: a stripe at the foot of compute's end, mixed in thin bars."""
    tall = height / 4 if height >= _READABLE else height
    css = "overlapped" if height >= _READABLE else "overlapped mixed"
    return (
        f'<rect class="{css}" x="{right - wide:.2f}" y="{top + height - tall:.2f}" width="{wide:.2f}" '
        f'height="{tall:.2f}"/>'
    )


def _legend(each: str) -> str:
    whole = '<rect class="{}" width="10" height="10"/>'
    drawn = [(whole.format(css), what) for css, what in zip(_CSS, PARTS, strict=True)]
    stripe = f'{whole.format("compute")}<rect class="overlapped" y="6" width="10" height="4"/>'
    drawn.append((stripe, "communication beside compute"))
    items = "".join(
        f'<li><svg viewBox="0 0 10 10" aria-hidden="true">{mark}</svg>{text(what)}</li>'
        for mark, what in drawn
    )
    said = f"{each}The whole bar is the recorded window." if each else "Each bar is a rank's recorded window."
    return f'<p class="dim">{said}</p><ul class="ranks legend">{items}</ul>'
