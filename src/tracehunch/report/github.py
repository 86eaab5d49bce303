"""Workflow commands for GitHub Actions: the worst surprises and findings as annotations of the run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tracehunch.report import diff_findings, finding_texts
from tracehunch.report.summary import Selection
from tracehunch.report.verdict_text import explained_text, surprise_text, tally
from tracehunch.units import printable, shorten
from tracehunch.verdict import SEVERITIES, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.compare.model import Diff
    from tracehunch.verdict import Look

MOST: Final = 10
"""Annotations of a kind that GitHub shows for a step; the rest belongs in the step's summary."""

_TITLE: Final = 200
_LONGEST: Final = 16_000
"""Characters of an annotation's title and text; GitHub takes 255, and 64 KB."""

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_LEADING: Final = re.compile(r"^(\s*)::", re.MULTILINE)
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})

Annotation = tuple[str, str, str]
"""Severity, title and text."""


def render(look: Look, *, selection: Selection | None = None, source: str = "") -> str:
    """Return the commands of a look, surprises before findings, the worst first, then how many there are."""
    name = printable(source or look.facts.tree.trace.label)
    found = finding_texts.findings(look, selection or Selection())
    noted = list(_surprises(look.verdict))
    noted += [
        (one.severity, f"{one.id} in {one.scope}" if one.scope else one.id, finding_text(one))
        for one in found
    ]
    said = f"{name}: {finding_texts.findings_aside(found)}"
    if look.verdict != Verdict():
        said = f"{name}: {tally(look.verdict)}; findings: {finding_texts.findings_aside(found)}"
    return lines(noted, said)


def render_diff(diff: Diff, *, sources: Sequence[str] = ()) -> str:
    """Return the commands of a comparison: what became slower, and findings that are new or grew."""
    names = sources or [look.facts.tree.trace.label for look in (diff.before, diff.after)]
    noted = [(one.severity, f"regression: {names[1]}", one.text) for one in diff.regressions]
    aside = diff_findings.findings_aside(diff)
    return lines(noted, f"{printable(names[0])} to {printable(names[1])}: {aside or 'no new findings'}")


def command(severity: str, title: str, said: str) -> str:
    """Return one workflow command, escaped as its syntax demands."""
    kind = _COMMANDS[severity]
    text = "\n".join(printable(line) for line in said.split("\n")).replace("##[", "## [")
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}..."
    head = shorten(printable(title).replace("##[", "## ["), _TITLE)
    return f"::{kind} title={head.translate(_PROPERTY)}::{text.translate(_DATA)}"


def defused(said: str) -> str:
    """Return text in which GitHub finds no command, wherever a name in it stands.

    It takes `##[` for one anywhere in a line, and `::` where a line begins, behind any white space.
    """
    return _LEADING.sub(r"\1: :", said.replace("##[", "## ["))


def _surprises(verdict: Verdict) -> Iterable[Annotation]:
    for one in verdict.surprises:
        said = f"{surprise_text(one)}; {explained_text(one)}"
        yield one.severity, f"surprise: {one.claim.key} in {one.claim.scope}", said
    for unknown in verdict.cannot_tell:
        yield "note", f"cannot tell: {unknown.key}", finding_texts.cannot_tell_text(unknown)


def finding_text(one: finding_texts.FindingText) -> str:
    """Return what an annotation says of a finding."""
    parts = [one.summary, f"fix: {one.fix}" if one.fix else "", one.stake]
    return "\n".join(part for part in parts if part)


def lines(noted: Sequence[Annotation], said: str) -> str:
    """Return annotations as commands, the worst first and as many as GitHub shows, then a plain line."""
    found = []
    for severity in reversed(SEVERITIES):
        here = [one for one in noted if one[0] == severity]
        found += [command(*one) for one in here[:MOST]]
        if len(here) > MOST:
            found.append(f"{len(here) - MOST} more of severity {severity}: only the step's summary has them")
    return "\n".join([*found, _plain(said)]) + "\n"


def _plain(said: str) -> str:
    """Return a line that GitHub takes for no command, whatever it begins with."""
    return defused(f"tracehunch: {said}")
