"""Surprises and findings of the attention series as cards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.attention.outcome import looks
from tracehunch.report import attention_surprises as unexpected
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.timeline import evidence_mark
from tracehunch.units import time_us

if TYPE_CHECKING:
    from tracehunch.attention.outcome import Series
    from tracehunch.report.attention_surprises import Ranked
    from tracehunch.verdict import Finding


Marks = dict[int, str]
"""The attributes that lead to a finding's evidence, by the identity of the finding."""


def marks_of(series: Series) -> Marks:
    """Return those of all findings of a series: the timeline shows each look under its variant's name."""
    return {
        id(finding): evidence_mark(f"f{at}", finding.id, outcome.variant.name)
        for outcome, look in looks(series)
        for at, finding in enumerate(look.checked.findings)
    }


def surprise_card(number: int, one: Ranked, told: set[tuple[str, str]], marks: Marks) -> str:
    """Return a card with a link of its own; findings that were told already are not told again."""
    severity = one.surprise.severity
    main, parts = unexpected.main_and_parts(one)
    new = [finding for finding in (*main, *parts) if (one.names[0], finding.id) not in told]
    told |= {(one.names[0], finding.id) for finding in new}
    findings = "".join(finding_html(finding, marks, whole=finding in main) for finding in new)
    return (
        f'<article class="card {severity}" id="s-{number}"><h3>'
        f'<span class="tag {severity}">{severity}</span> '
        f'<span><a class="anchor" href="#s-{number}">{number}</a> {code(", ".join(one.names))}</span></h3>'
        f"<p><strong>{text(unexpected.surprise_text(one))}</strong></p>"
        f'<p class="dim">{text(unexpected.why_text(one))}</p>{findings}</article>'
    )


def finding_html(finding: Finding, marks: Marks, *, whole: bool = True) -> str:
    """Return summary, cause, fix and evidence; of what is counted in another finding no cause."""
    rows = "".join(
        f"<dt>{word}</dt><dd>{text(said)}</dd>"
        for word, said in unexpected.finding_parts(finding)
        if whole or word != "cause"
    )
    stake = f", {time_us(finding.time_at_stake_us)} at stake" if finding.time_at_stake_us else ""
    return (
        f"<div{marks.get(id(finding), '')}><p><strong>{text(finding.id)}</strong>{text(stake)}: "
        f'{text(finding.summary)}</p><dl class="facts">{rows}</dl></div>'
    )
