"""The attention series as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.attention.outcome import looks
from tracehunch.report import attention_glance as glance
from tracehunch.report.attention_headline import headline, interrupted_text
from tracehunch.report.html.attention import glance_section, others_section, surprises_section
from tracehunch.report.html.environment import environment_section
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.page import page
from tracehunch.report.html.timeline import timeline_section
from tracehunch.report.html.traffic import traffic_section

if TYPE_CHECKING:
    from tracehunch.attention.outcome import Series


def render(series: Series, *, next_command: str = "") -> bytes:
    """Return the page."""
    seen = {outcome.variant.name: look for outcome, look in looks(series)}
    workloads = dict.fromkeys(workload for _, workload in glance.groups(series))
    found = [
        glance_section(series),
        surprises_section(series),
        *(traffic_section(workload) for workload in list(workloads)[:1]),
        timeline_section(seen),
        others_section(series),
        *(environment_section(look) for look in list(seen.values())[:1]),
    ]
    subtitle = f"<p><strong>{text(headline(series))}</strong></p>"
    if series.interrupted:
        subtitle += f"<p>{text(interrupted_text(series))}</p>"
    ending = f"Next: {code(next_command)}" if next_command else ""
    sections = [one for one in found if one is not None]
    return page("tracehunch attention", subtitle, sections, ending=ending)
