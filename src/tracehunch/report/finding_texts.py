"""The findings of a Look in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.units import plural, printable, time_us
from tracehunch.verdict import SEVERITIES, CannotTell, Finding, Look

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.report.layout import Style
    from tracehunch.report.summary import Selection

SEVERITY_STYLE: Final[dict[str, Style]] = {"error": "bold red", "warning": "bold yellow", "note": "cyan"}
_EVIDENCE_SHOWN: Final = 6
_FINDINGS_SHOWN: Final = 8
_UNTOLD_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class FindingText:
    """One finding, its evidence in words; `position` is its place in the look's findings."""

    severity: str
    id: str
    scope: str
    stake: str
    summary: str
    cause: str
    fix: str
    evidence: str
    position: int


def findings(look: Look, selection: Selection) -> list[FindingText]:
    """Return findings of the selected scopes: worst first, of one severity as the checks ranked them."""
    taken = [(at, one) for at, one in enumerate(look.checked.findings) if selection.takes(one.scope)]
    ordered = sorted(taken, key=lambda pair: -SEVERITIES.index(pair[1].severity))
    return [_finding_text(one, at) for at, one in ordered]


def shown(found: Sequence[FindingText], selection: Selection) -> tuple[Sequence[FindingText], str]:
    """Pick the findings that a report shows, and say how many more there are; "" if none."""
    rest = () if selection.all_findings else found[_FINDINGS_SHOWN:]
    if not rest:
        return found, ""
    return found[:_FINDINGS_SHOWN], f"{_counts(rest)} more, of less weight; --all shows all of them"


def untold(look: Look, selection: Selection) -> list[str]:
    """Return what the checks could not tell of the selection; the first few, and how many more there are."""
    told = [unknown for unknown in look.checked.cannot_tell if selection.takes(unknown.scope)]
    texts = [cannot_tell_text(unknown) for unknown in told]
    more = len(texts) - _UNTOLD_SHOWN
    return texts[:_UNTOLD_SHOWN] + ([f"{more} more, all in --format json"] if more > 0 else [])


def findings_aside(found: Sequence[FindingText]) -> str:
    """``2 warnings, 1 note: warnings first, then by time at stake``; ``none`` where nothing was found."""
    kinds = {one.severity for one in found}
    counts = _counts(found)
    if len(found) < 2:  # one finding stands in no order
        return counts or "none"
    first = f"{found[0].severity}s first, then " if len(kinds) > 1 else ""
    return f"{counts}; {first}by time at stake"


def _counts(found: Sequence[FindingText]) -> str:
    """``2 warnings, 1 note``."""
    seen = [one.severity for one in found]
    kinds = [severity for severity in reversed(SEVERITIES) if severity in seen]
    return ", ".join(plural(seen.count(severity), severity) for severity in kinds)


def cannot_tell_text(unknown: CannotTell) -> str:
    """Return what could not be told, why, and how to record so that it can."""
    text = f"{unknown.key} in {printable(unknown.scope)}: {printable(unknown.reason)}"
    return f"{text}; record with {printable(unknown.record_with)}" if unknown.record_with else text


def evidence_text(events: Sequence[int]) -> str:
    """Return positions in the file's traceEvents, the first few: ``events 3, 80 and 57 more``."""
    shown = ", ".join(str(event) for event in events[:_EVIDENCE_SHOWN])
    more = f" and {len(events) - _EVIDENCE_SHOWN} more" if len(events) > _EVIDENCE_SHOWN else ""
    return f"{'event' if len(events) == 1 else 'events'} {shown}{more}" if events else ""


def _finding_text(finding: Finding, position: int) -> FindingText:
    evidence = evidence_text(finding.evidence)
    stake = finding.time_at_stake_us
    return FindingText(
        severity=finding.severity,
        id=finding.id,
        scope=printable(finding.scope),
        stake=f"{time_us(stake)} a call at stake" if stake else "",
        summary=printable(finding.summary),
        cause=printable(finding.cause),
        fix=printable(finding.fix),
        evidence=f"{evidence}{'; ' if evidence else ''}{finding.confidence} confidence",
        position=position,
    )
