"""What the checks saw in one trace and not in the other, or more of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.compare.model import FindingChange
from tracehunch.verdict import SEVERITIES, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tracehunch.compare.model import ScopePair
    from tracehunch.verdict import Look

    Key = Callable[[Finding], object | None]
    Names = Mapping[str, str] | None
    """What scopes are called on the other side; None: whatever they are called."""

SYMPTOMS: Final = frozenset({"gpu-gap", "overhead-bound"})
"""Findings about a GPU that waits: they grow, too, where it has less to do in the same time."""

_GROWTH: Final = 1.25
"""By how much the time at stake must grow where the number of activities did not: host times vary."""

_ONE_A_SCOPE: Final = SYMPTOMS | {
    "exposed-communication", "for-loop-indexing", "fusion-missed", "host-stall", "unfused-attention",
    "unfused-optimizer",
}  # fmt: skip
"""Findings that a scope has or has not: their subject only says what it was seen by."""


def compare_findings(
    before: Look, after: Look, pairs: Sequence[ScopePair]
) -> tuple[tuple[Finding, ...], tuple[Finding, ...], tuple[FindingChange, ...]]:
    """Return new findings, those that are gone, and those that grew.

    A finding is the same one where id, op and scope are; scopes as they were matched. What is left over is
    the same one where it is the only one of its kind in the scope, or about the same op in another scope.
    Where neither scope has a counterpart, its kind has to do.
    """
    renamed = {pair.before.scope.name: pair.after.scope.name for pair in pairs}
    left = _Left(before.checked.findings, after.checked.findings, renamed)
    left.match(lambda one: (one.id, one.subject), by_scope=True, every=True)
    left.match(_one_a_scope, by_scope=True)
    left.match(lambda one: (one.id, one.subject), by_scope=False)
    known = {*renamed, *renamed.values()}
    left.match(lambda one: None if one.scope in known else _one_a_scope(one), by_scope=False, every=True)
    grown = [change for change in left.both if _has_grown(change)]
    return tuple(left.after), tuple(left.before), tuple(grown)


def _one_a_scope(finding: Finding) -> str | None:
    return finding.id if finding.id in _ONE_A_SCOPE else None


class _Left:
    """What was matched until now, and what is left of both sides."""

    def __init__(
        self, before: Sequence[Finding], after: Sequence[Finding], renamed: Mapping[str, str]
    ) -> None:
        self.before, self.after = list(before), list(after)
        self.both: list[FindingChange] = []
        self._renamed = renamed

    def match(self, key: Key, *, by_scope: bool, every: bool = False) -> None:
        """Match findings of one key: those that are the only one on their side, or ``every`` first one."""
        names: tuple[Names, Names] = (self._renamed, {}) if by_scope else (None, None)
        first = _by(key, self.before, names[0], every=every)
        second = _by(key, self.after, names[1], every=every)
        for one in [one for one in second if one in first]:
            self.both.append(FindingChange(first[one], second[one]))
            self.before = [left for left in self.before if left is not first[one]]
            self.after = [left for left in self.after if left is not second[one]]
        if every:  # more of the same key are the same finding
            self.before = [one for one in self.before if _keyed(key, one, names[0]) not in second]
            self.after = [one for one in self.after if _keyed(key, one, names[1]) not in first]


def _by(key: Key, findings: Iterable[Finding], renamed: Names, *, every: bool) -> dict[object, Finding]:
    found: dict[object, list[Finding]] = {}
    for finding in findings:
        if key(finding) is not None:
            found.setdefault(_keyed(key, finding, renamed), []).append(finding)
    return {one: alike[0] for one, alike in found.items() if every or len(alike) == 1}


def _keyed(key: Key, finding: Finding, renamed: Names) -> object:
    scope = "" if renamed is None else renamed.get(finding.scope, finding.scope)
    return key(finding), scope


def _has_grown(change: FindingChange) -> bool:
    before, after = change.before, change.after
    assert before is not None
    assert after is not None
    if SEVERITIES.index(after.severity) > SEVERITIES.index(before.severity):
        return True
    counted = before.subject == after.subject and after.id not in SYMPTOMS
    if counted and (after.per_call or before.per_call):
        return after.per_call > before.per_call
    return after.time_at_stake_us > _GROWTH * before.time_at_stake_us > 0
