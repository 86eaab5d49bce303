"""A run over time as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report.html.escape import code, text
from tracehunch.report.html.over_time import (
    changes_section,
    files_section,
    rest_section,
    warnings_section,
)
from tracehunch.report.html.page import page
from tracehunch.report.over_time_quiet import header_lines, next_command, warnings
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.model import OverTime


def render(report: OverTime, *, sources: Sequence[str] = (), all_shifts: bool = False) -> bytes:
    """Return the page; ``sources`` are what the user named. With ``all_shifts`` every change is drawn."""
    found = [
        changes_section(report, all_shifts=all_shifts),
        rest_section(report),
        warnings_section(report),
        files_section(report),
    ]
    named = " ".join(code(one) for one in sources)
    ending = f"Next: {code(next_command(report))}"
    sections = [one for one in found if one is not None]
    return page("tracehunch look --over-time", f"{named}{_brief(report)}", sections, ending=ending)


def _brief(report: OverTime) -> str:
    """Say in a line which run this is; the rest stands under Files."""
    rows = header_lines(report)
    ranks = len(report.runs)
    said = [f"{label} {told}" if label != "read" else told for label, told in rows if label != "tested"]
    if ranks > 1:
        cycles = sum(len(run.cycles) for run in report.runs)
        said = [f"{plural(ranks, 'rank')}, {plural(cycles, 'file')}", *said[ranks:]]
    doubts = len(warnings(report))
    said += [f'<a href="#warnings">{plural(doubts, "warning")}</a> about the files'] if doubts else []
    return f"<p>{'; '.join(one if one.startswith('<a ') else text(one) for one in said)}</p>"
