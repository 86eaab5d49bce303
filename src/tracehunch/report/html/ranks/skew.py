"""How late each rank came to each collective: a picture that scripts draw, ranks down, time across."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report.html.escape import text
from tracehunch.report.html.section import Section
from tracehunch.report.ranks_clocks import largest_error_ns
from tracehunch.report.ranks_json import lateness_object
from tracehunch.report.ranks_lateness import lateness
from tracehunch.units import count, plural, time_us

if TYPE_CHECKING:
    from tracehunch.compare.ranks.model import Ranks
    from tracehunch.report.ranks_lateness import Lateness


def skew_section(ranks: Ranks) -> Section | None:
    """Return the section; None where no collective was matched."""
    cells = lateness(ranks)
    if cells is None:
        return None
    html = (
        f"<p>{text(_meaning(ranks, cells))}</p>"
        '<div class="skew only-screen" id="skew-box" hidden>'
        '<canvas id="skew-cells" tabindex="0" role="application" aria-describedby="skew-keys" '
        'aria-label="How late each rank came to each collective: arrow keys select a cell"></canvas>'
        '<p id="skew-said" class="said" role="status"></p>'
        '<ul id="skew-legend" class="ranks legend"></ul>'
        '<p id="skew-keys" class="dim">Point at a cell, or move with the arrow keys; Home and End go to the '
        "first and the last collective, Esc clears.</p></div>"
        '<p class="only-print">The picture is drawn on screen only.</p>'
        "<noscript><p>The picture needs JavaScript. Who comes late stands under Collectives.</p></noscript>"
    )
    return Section(
        "skew",
        "Who comes late",
        html,
        aside="ranks down, collectives across, in order of time",
        data=lateness_object(cells),
        scripts=("ranks",),
        styles=("ranks",),
    )


def _meaning(ranks: Ranks, cells: Lateness) -> str:
    said = f"{plural(len(ranks.matched), 'collective')} that several ranks recorded."
    together = [
        f"{count(last - first + 1)} {what}"
        for (first, last), what in ((cells.collectives[-1], "collectives"), (_span(ranks, cells), "ranks"))
        if last > first
    ]
    merged = (
        f" A cell holds up to {' and '.join(together)}, and shows the latest arrival." if together else ""
    )
    error_ns = largest_error_ns(ranks)
    known = f" Clocks are known to within {time_us(error_ns / 1e3)}." if error_ns else ""
    return f"{said} The stronger the colour, the later the rank came, after the first one.{merged}{known}"


def _span(ranks: Ranks, cells: Lateness) -> tuple[int, int]:
    """Return the first and last place of the ranks of the last row."""
    first, last = cells.ranks[-1]
    numbers = [row.rank for row in ranks.rows]
    return numbers.index(first), numbers.index(last)
