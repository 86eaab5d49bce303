"""Many ranks as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import ranks_summary
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.page import page
from tracehunch.report.html.ranks import (
    clocks_section,
    collectives_section,
    files_section,
    findings_section,
    odd_section,
    ranks_section,
)
from tracehunch.report.html.ranks.skew import skew_section
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Ranks


def render(ranks: Ranks, *, sources: Sequence[str] = ()) -> bytes:
    """Return the page; ``sources`` are what the user named."""
    found = [
        findings_section(ranks),
        ranks_section(ranks),
        skew_section(ranks),
        collectives_section(ranks),
        odd_section(ranks),
        clocks_section(ranks),
        files_section(ranks, sources),
    ]
    named = ranks_summary.named(sources)
    ending = f"Next: {code(ranks_summary.next_command(ranks, sources))}"
    sections = [one for one in found if one is not None]
    return page(
        "tracehunch ranks", f"{code(named) if named else ''}{_brief(ranks, sources)}", sections, ending=ending
    )


def _brief(ranks: Ranks, sources: Sequence[str]) -> str:
    """Say in a line which job this is, then what makes the report doubtful; the rest stands under Files."""
    rows = dict(ranks_summary.recorded_on(ranks, sources))
    said = [f"{rows['ranks']} ranks" if ranks.world_size is not None and not ranks.missing else rows["ranks"]]
    said += [rows[key] for key in ("on", "recorded") if key in rows]
    said += [f"a step: {rows['step']}"] if "step" in rows else []
    said += [f"{plural(len(ranks.unread), 'file')} not read"] if ranks.unread else []
    doubts = [f"{one.code}: {one.message}" for one in ranks_summary.alerts(ranks)]
    items = "".join(f"<li>{text(one)}</li>" for one in doubts)
    chosen = f"<p>{text(rows['job'])}</p>" if "job" in rows else ""
    return f"<p>{text('; '.join(said))}</p>{chosen}{f'<ul>{items}</ul>' if items else ''}"
