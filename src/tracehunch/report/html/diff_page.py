"""A comparison of two traces as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import diff_findings
from tracehunch.report.diff_words import TOP
from tracehunch.report.html.diff import (
    changes_section,
    environments_section,
    findings_section,
    headline_html,
    scopes_section,
)
from tracehunch.report.html.escape import code
from tracehunch.report.html.page import page
from tracehunch.report.html.timeline import timeline_section

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Diff


def render(diff: Diff, *, sources: Sequence[str] = (), top: int = TOP, all_scopes: bool = False) -> bytes:
    """Return the page; `sources` are what the user named the traces by."""
    sources = sources or [look.facts.tree.trace.label for look in (diff.before, diff.after)]
    names = [f"before: {sources[0]}", f"after: {sources[1]}"]
    found = [
        changes_section(diff, top),
        scopes_section(diff, all_scopes=all_scopes),
        findings_section(diff, names),
        timeline_section({names[0]: diff.before, names[1]: diff.after}),
        environments_section(diff, sources),
    ]
    subtitle = f"<p>{code(sources[0])} → {code(sources[1])}</p>{headline_html(diff)}"
    ending = f"Next: {code(diff_findings.next_command(diff, sources))}"
    sections = [one for one in found if one is not None]
    return page("tracehunch diff", subtitle, sections, ending=ending)
