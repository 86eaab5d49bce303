"""A Look as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import summary
from tracehunch.report.html.critical import critical_section
from tracehunch.report.html.environment import environment_section
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.findings import findings_section
from tracehunch.report.html.kernels import kernels_section
from tracehunch.report.html.page import page
from tracehunch.report.html.roofline import roofline_section
from tracehunch.report.html.scopes import scopes_section
from tracehunch.report.html.timeline import timeline_section
from tracehunch.report.html.verdict import verdict_section
from tracehunch.report.summary import Selection, next_command
from tracehunch.verdict import Verdict

if TYPE_CHECKING:
    from tracehunch.compare.critical import CriticalPath
    from tracehunch.verdict import Look


def render(
    look: Look, *, selection: Selection | None = None, source: str = "", path: CriticalPath | None = None
) -> bytes:
    """Return the page. `source` is what the user named the trace by; its own label if empty."""
    selection = selection or Selection()
    source = source or look.facts.tree.trace.label
    found = [
        verdict_section(look),
        None if path is None else critical_section(path),
        findings_section(look, selection),
        timeline_section({source: look}),
        scopes_section(look, selection),
        kernels_section(look, selection),
        roofline_section(look, selection),
        environment_section(look),
    ]
    verb = "look" if look.verdict == Verdict() else "check"
    ending = f"Next: {code(next_command(look, source, selection))}"
    sections = [one for one in found if one is not None]
    return page(f"tracehunch {verb}", f"{code(source)}{_brief(look)}", sections, ending=ending)


def _brief(look: Look) -> str:
    """Say in a line what the trace is of; the rest stands under Environment."""
    rows = dict(summary.recorded_on(look))
    said = [rows[key] for key in ("on", "recorded") if key in rows]
    said += [f"GPU idle {rows['GPU idle']}"] if "GPU idle" in rows else []
    return f"<p>{text('; '.join(said))}</p>"
