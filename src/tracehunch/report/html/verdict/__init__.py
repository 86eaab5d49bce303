"""The verdict: guess against saw, surprises by time at stake; what could not be told; what held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report.finding_texts import evidence_text
from tracehunch.report.html.escape import code, slug, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.html.timeline import evidence_mark
from tracehunch.report.verdict_text import expected_text, explained_text, tally, value_text
from tracehunch.units import time_us
from tracehunch.verdict import Look, Surprise, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.guess.model import Claim

_HEADS = (Head("fact"), Head("scope"), Head("guessed"), Head("saw"), Head("who"), Head("why"))


def verdict_section(look: Look) -> Section | None:
    """Return the section; None where nobody guessed."""
    verdict = look.verdict
    if verdict == Verdict():
        return None
    html = "".join((*_surprises(verdict), *_untold(verdict), *_held(verdict)))
    return Section("verdict", "Verdict", html, aside=tally(verdict))


def _surprises(verdict: Verdict) -> Iterator[str]:
    """Order by time at stake, the largest first, and among equals what nothing explains."""
    numbered = enumerate(verdict.surprises)
    ranked = sorted(numbered, key=lambda pair: (-pair[1].time_at_stake_us, bool(pair[1].explained_by)))
    for number, (at, one) in enumerate(ranked, 1):
        yield _surprise(number, at, one)


def _surprise(number: int, at: int, one: Surprise) -> str:
    claim = one.claim
    stake = f' <span class="stake">{time_us(one.time_at_stake_us)} a call at stake</span>'
    links = ", ".join(f'<a href="#f-{slug(id_)}">{text(id_)}</a>' for id_ in one.explained_by)
    why = f"explained by {links}" if links else f"<strong>{text(explained_text(one))}</strong>"
    evidence = evidence_text(one.evidence)
    return (
        f'<article class="card {one.severity}" id="s-{number}"'
        f"{evidence_mark(f's{at}', f'the surprise about {claim.key}')}><h3>"
        f'<span class="tag {one.severity}">surprise: {one.severity}</span> <span>'
        f'<a class="anchor" href="#s-{number}">{text(claim.key)}</a> in {code(claim.scope)}</span>'
        f"{stake if one.time_at_stake_us else ''}</h3>"
        f'<dl class="sides"><div><dt>guessed, by {text(_whose(claim))}</dt>'
        f"<dd>{text(expected_text(claim))}</dd></div>"
        f"<div><dt>saw</dt><dd>{text(value_text(one.seen, claim.unit))}</dd></div></dl>"
        + (f'<p class="dim">guessed because: {text(claim.why)}</p>' if claim.why else "")
        + f"<p>{why}</p>"
        + (f'<p class="dim">evidence: {text(evidence)}</p>' if evidence else "")
        + "</article>"
    )


def _whose(claim: Claim) -> str:
    return "you" if claim.who == "user" else f"the {claim.who}"


def _untold(verdict: Verdict) -> Iterator[str]:
    for one in verdict.cannot_tell:
        record = f"<p>Record with {code(one.record_with)} to see it.</p>" if one.record_with else ""
        yield (
            '<article class="card untold"><h3><span class="tag untold">cannot tell</span> '
            f"<span>{code(one.key)} in {code(one.scope)}</span></h3>"
            f"<p>{text(one.reason)}</p>{record}</article>"
        )


def _held(verdict: Verdict) -> Iterator[str]:
    if not verdict.held:
        return
    rows = [
        [
            Cell(code(one.claim.key)),
            Cell(code(one.claim.scope)),
            Cell(text(expected_text(one.claim))),
            Cell(text(value_text(one.seen, one.claim.unit))),
            Cell(text(one.claim.who)),
            Cell(text(one.claim.why)),
        ]
        for one in verdict.held
    ]
    yield f"<h3>Held: {len(rows)}</h3>" + table(_HEADS, rows, caption="Claims that held")
