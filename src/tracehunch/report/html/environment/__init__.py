"""What was recorded on what, and the warnings about the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import summary
from tracehunch.report.html.escape import text
from tracehunch.report.html.section import Section
from tracehunch.units import plural

if TYPE_CHECKING:
    from tracehunch.trace.model import Notice
    from tracehunch.verdict import Look


def environment_section(look: Look) -> Section:
    """Return the section: device, contents, versions, machine, warnings."""
    rows = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in summary.recorded_on(look))
    notices = summary.notices(look)
    cards = "".join(_card(one) for one in notices)
    aside = plural(len(notices), "warning") if notices else "no warnings"
    return Section("environment", "Environment", f'<dl class="facts">{rows}</dl>{cards}', aside=aside)


def _card(notice: Notice) -> str:
    css, tag = ("warning", "data lost") if notice.lossy else ("note", "about the file")
    return (
        f'<article class="card {css}"><h3><span class="tag {css}">{tag}</span> {text(notice.code)}</h3>'
        f"<p>{text(notice.message)}</p></article>"
    )
