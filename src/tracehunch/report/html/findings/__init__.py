"""Findings: what the checks saw, each with a link of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import finding_texts
from tracehunch.report.html.escape import code, slug, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.timeline import evidence_mark
from tracehunch.report.summary import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.report.finding_texts import FindingText
    from tracehunch.verdict import Look


def findings_section(look: Look, selection: Selection) -> Section:
    """Return the section: all findings in full, the worst first."""
    whole = Selection(selection.scopes, selection.top, selection.all_scopes, all_findings=True)
    found = finding_texts.findings(look, whole)
    untold = [
        f'<p class="dim"><strong>cannot tell</strong> {text(one)}</p>'
        for one in finding_texts.untold(look, selection)
    ]
    html = "".join((*finding_cards(found), *untold)) or "<p>No check found anything to report.</p>"
    return Section("findings", "Findings", html, aside=finding_texts.findings_aside(found))


def finding_card(one: FindingText, link: str) -> str:
    """Return a finding as a card that a link leads to."""
    where = f" in {code(one.scope)}" if one.scope else ""
    stake = f' <span class="stake">{text(one.stake)}</span>' if one.stake else ""
    rows = "".join(
        f"<dt>{label}</dt><dd>{text(said)}</dd>"
        for label, said in (("cause", one.cause), ("fix", one.fix), ("evidence", one.evidence))
        if said
    )
    return (
        f'<article class="card {one.severity}" id="{link}"'
        f"{evidence_mark(f'f{one.position}', one.id)}><h3>"
        f'<span class="tag {one.severity}">{one.severity}</span> '
        f'<span><a class="anchor" href="#{link}">{text(one.id)}</a>{where}</span>{stake}</h3>'
        f'<p>{text(one.summary)}</p><dl class="facts">{rows}</dl></article>'
    )


def finding_cards(found: list[FindingText]) -> Iterator[str]:
    """Return a card for each: the first of an id is linked plainly, "f-hidden-copy", others numbered."""
    seen: dict[str, int] = {}
    for one in found:
        number = seen[one.id] = seen.get(one.id, 0) + 1
        link = f"f-{slug(one.id)}" + (f"-{number}" if number > 1 else "")
        yield finding_card(one, link)
