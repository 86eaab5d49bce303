"""Findings that one trace has and the other has not, and the next command to type."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from tracehunch.report.diff_words import DETAILED
from tracehunch.units import count, plural, printable, time_us
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Diff
    from tracehunch.verdict import Finding

_LONGEST: Final = 200
"""Characters of a scope's name that a command may hold."""


def finding_lines(diff: Diff) -> list[tuple[str, Finding, str]]:
    """Return (new, grown or gone; the finding; how much) for what matters, worst first, then by time."""
    rows = [("new", one, "") for one in _ordered(diff.new)]
    grown = {id(change.after): change for change in diff.grown}
    rows += [
        ("grown", one, _grown(grown[id(one)].before, one))
        for one in _ordered([change.after for change in diff.grown if change.after is not None])
    ]
    rows += [("gone", one, "") for one in _ordered(diff.gone)]
    return [row for row in rows if _matters(row[1])]


def _ordered(findings: Sequence[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda one: (-SEVERITIES.index(one.severity), -one.time_at_stake_us))


def folded_notes(diff: Diff) -> str:
    """Count the notes that cost nothing: they come and go with the kernels they are about."""
    folded = [one for one in (*diff.new, *diff.gone) if not _matters(one)]
    return (
        f"{plural(len(folded), 'note')} without time at stake came or went; --format json lists all"
        if folded
        else ""
    )


def findings_aside(diff: Diff) -> str:
    """``1 new, 2 gone``; ``none``."""
    rows = [what for what, _, _ in finding_lines(diff)]
    return (
        ", ".join(f"{rows.count(what)} {what}" for what in ("new", "grown", "gone") if what in rows) or "none"
    )


def _matters(finding: Finding) -> bool:
    return bool(finding.time_at_stake_us) or finding.severity != "note"


def _grown(before: Finding | None, after: Finding) -> str:
    if before is None:
        return ""
    if before.per_call != after.per_call:
        return f"{count(before.per_call)} -> {count(after.per_call)} a call"
    return f"{time_us(before.time_at_stake_us)} -> {time_us(after.time_at_stake_us)}"


def next_command(diff: Diff, sources: Sequence[str]) -> str:
    """Return the next command to type: about what is new, else a closer look, else a baseline."""
    first, second = (_quoted(source) for source in sources)
    new = [one for what, one, _ in finding_lines(diff) if what != "gone"]
    if new:
        loudest = max(new, key=lambda one: SEVERITIES.index(one.severity))
        return f"tracehunch explain {loudest.id}"
    if not diff.environment.same_kind:
        return f"tracehunch look {second if diff.environment.on_gpu[1] else first}"
    detailed = [one for one in diff.scopes if one.pair.after.scope.kind in DETAILED]
    changed = [one for one in detailed if one.changes or one.delta_us]
    if changed:
        name = changed[0].pair.after.scope.name
        can_be_typed = printable(name) == name and len(name) <= _LONGEST
        return f"tracehunch look {second}{f' --scope {_quoted(name)}' if can_be_typed else ''}"
    return f"tracehunch guess --from {second} -o hunch.toml"


def _quoted(text: str) -> str:
    return "TRACE" if text == "-" else shlex.quote(printable(text))
