"""A verdict for a terminal: surprises first, then what could not be told, then how many claims held.

Shared by every verb that judges guesses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.finding_texts import SEVERITY_STYLE, cannot_tell_text, evidence_text
from tracehunch.report.layout import Line, Span, View, heading, paragraph
from tracehunch.units import (
    bandwidth,
    count,
    elide,
    flop_count,
    flop_rate,
    join,
    percent,
    plural,
    printable,
    size,
    time_us,
)
from tracehunch.verdict import Surprise, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.guess import Claim

_HELD_SHOWN: Final = 8
_FORMATS: Final[dict[str, Callable[[float], str]]] = {
    "us": time_us,
    "bytes": size,
    "bytes/s": bandwidth,
    "flop": flop_count,
    "flop/s": flop_rate,
    "ratio": lambda value: percent(100 * value),
    "percent": percent,
}
_RELATION_WORDS: Final = {
    "==": "",
    "<=": "at most ",
    "<": "less than ",
    ">=": "at least ",
    ">": "more than ",
    "~": "about ",
    "leads": "led by ",
    "merged": "one kernel of ",
    "in": "",
}


def verdict_lines(verdict: Verdict, view: View) -> list[Line]:
    """All three outcomes; nothing where nobody guessed."""
    if verdict == Verdict():
        return []
    lines = heading("Verdict", tally(verdict))
    for surprise in verdict.surprises:
        lines += _surprise(surprise, view)
    lines += [()] if verdict.surprises else []
    for unknown in verdict.cannot_tell:
        first = ("  ", Span("cannot tell", "bold"), "  ")
        lines += paragraph(cannot_tell_text(unknown), view, first=first, indent=15)
    for held in held_texts(verdict):
        lines += paragraph(held, view, first=("  ", Span("held", "green"), "  "), indent=8, style="dim")
    return lines


def tally(verdict: Verdict) -> str:
    """``12 held, 2 surprises (1 unexplained), 1 cannot tell``."""
    unexplained = sum(not surprise.explained_by for surprise in verdict.surprises)
    surprises = plural(len(verdict.surprises), "surprise") + (
        f" ({unexplained} unexplained)" if unexplained else ""
    )
    return f"{len(verdict.held)} held, {surprises}, {len(verdict.cannot_tell)} cannot tell"


def surprise_text(surprise: Surprise) -> str:
    """``guessed 5 (textbook: five ops), saw 6``."""
    claim = surprise.claim
    who = f"{claim.who}: {printable(claim.why)}" if claim.why else claim.who
    expected, seen = expected_text(claim), value_text(surprise.seen, claim.unit)
    if expected == seen:  # they differ in digits that are not shown
        expected, seen = f"{claim.expected} {claim.unit}", f"{surprise.seen} {claim.unit}"
    return f"guessed {expected} ({who}), saw {seen}"


def explained_text(surprise: Surprise) -> str:
    """Which findings explain a surprise; that none does is worth the most attention, unless it is a slip."""
    known = join(surprise.explained_by)
    if known:
        return f"explained by {known}"
    return printable(surprise.slip) if surprise.slip else "unexplained: no finding tells why"


def held_texts(verdict: Verdict, most: int | None = _HELD_SHOWN) -> list[str]:
    """Return the claims that held: ``most`` of them and how many more, or all."""
    texts = [
        f"{held.claim.key} in {printable(held.claim.scope)} {expected_text(held.claim)}"
        for held in verdict.held
    ]
    more = 0 if most is None else len(texts) - most
    listed = f"{more} more; --format markdown or json lists all"
    return texts[:most] + ([listed] if more > 0 else [])


def expected_text(claim: Claim) -> str:
    """Return what was expected, in words: ``at most 5``, ``4 to 6``."""
    if claim.relation == "in" and isinstance(claim.expected, tuple):
        low, high = (value_text(one, claim.unit) for one in claim.expected)
        return f"{low} to {high}"
    return _RELATION_WORDS[claim.relation] + value_text(claim.expected, claim.unit)


def value_text(value: object, unit: str) -> str:
    """Return a fact's value for people, in the unit of its key."""
    if isinstance(value, tuple):
        return join([value_text(one, unit) for one in value])
    if not isinstance(value, int | float):
        return printable(str(value))
    return _FORMATS.get(unit, count)(value)


def _surprise(surprise: Surprise, view: View) -> list[Line]:
    severity = Span(surprise.severity, SEVERITY_STYLE[surprise.severity])
    stake = f"  {time_us(surprise.time_at_stake_us)} a call at stake" if surprise.time_at_stake_us else ""
    where = f" in {elide(printable(surprise.claim.scope), 30)}"
    lines: list[Line] = [(), ("  ", severity, "  ", Span(surprise.claim.key, "bold"), where, stake)]
    lines += paragraph(surprise_text(surprise), view, indent=4)
    lines += paragraph(
        explained_text(surprise), view, indent=4, style="" if surprise.explained_by else "bold"
    )
    evidence = evidence_text(surprise.evidence)
    return lines + (paragraph(f"evidence {evidence}", view, indent=4, style="dim") if evidence else [])
