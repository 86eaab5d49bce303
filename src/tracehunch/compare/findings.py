"""What the checks saw in one trace and not in the other, or more of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.compare.model import FindingChange
from tracehunch.verdict import SEVERITIES, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.model import ScopePair
    from tracehunch.verdict import Look

_GROWTH: Final = 1.25
"""By how much the time at stake must grow where the number of activities did not: host times vary."""

_Key = tuple[str, str, str]


def compare_findings(
    before: Look, after: Look, pairs: Sequence[ScopePair]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[FindingChange, ...]]:
    """Return new findings, those that are gone, and those that grew.

    A finding is the same one where id, op and scope are; scopes as they were matched.
    """
    renamed = {pair.before.scope.name: pair.after.scope.name for pair in pairs}
    first = _by_key(before.checked.findings, renamed)
    second = _by_key(after.checked.findings, {})
    new = tuple(finding for key, finding in second.items() if key not in first)
    gone = tuple(finding for key, finding in first.items() if key not in second)
    both = [FindingChange(first[key], second[key]) for key in second if key in first]
    return new, gone, tuple(change for change in both if _has_grown(change))


def _by_key(findings: Sequence[Finding], renamed: Mapping[str, str]) -> dict[_Key, Finding]:
    found: dict[_Key, Finding] = {}
    for finding in findings:
        found.setdefault((finding.id, renamed.get(finding.scope, finding.scope), finding.subject), finding)
    return found


def _has_grown(change: FindingChange) -> bool:
    before, after = change.before, change.after
    assert before is not None
    assert after is not None
    if SEVERITIES.index(after.severity) > SEVERITIES.index(before.severity):
        return True
    if after.per_call or before.per_call:
        return after.per_call > before.per_call
    return after.time_at_stake_us > _GROWTH * before.time_at_stake_us > 0
