"""What look finds on all ranks, or on most: told once, with the range over the ranks."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Final

from tracehunch.compare.ranks.lone import most_alone
from tracehunch.units import time_range_us
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.verdict import Finding

_TOLD_TOGETHER: Final = frozenset({"straggler", "exposed-communication"})
"""What all ranks together answer better."""
_OF_WAITING: Final = frozenset({"sync-stall", "gpu-gap"})
"""What follows on each rank from waiting for a straggler."""
_MOST: Final = 8
_EVIDENCE: Final = 3


@dataclass(frozen=True, slots=True)
class _Own:
    """What one rank has: its costliest finding of an id and a scope, and what that usually is."""

    rank: int
    finding: Finding
    stake_us: float


def shared_findings(
    members: Sequence[Member], whole: Sequence[int], *, has_straggler: bool
) -> tuple[Finding, ...]:
    """Return the warnings that more than a third of the ranks have, at most eight, the costliest first.

    ``whole``: positions of the ranks whose files are. Of a single one it is what look finds.
    """
    healthy = [members[at] for at in whole]
    if len(healthy) == 1:
        found = _of_one(healthy[0], is_alone=len(members) == 1)
    else:
        found = [_merged(mine, len(members), members[0].rank) for mine in _common(healthy)]
    left_out = _OF_WAITING if has_straggler else ()
    found = [one for one in found if one.severity != "note" and one.id not in left_out]
    found.sort(key=lambda one: (-SEVERITIES.index(one.severity), -one.time_at_stake_us, one.id, one.scope))
    return tuple(found[:_MOST])


def _common(members: Sequence[Member]) -> list[list[_Own]]:
    """Return by id and scope what enough ranks have; by id alone where they have it in different scopes."""
    by_scope: dict[str, dict[str, list[_Own]]] = defaultdict(lambda: defaultdict(list))
    for member in members:
        for (name, scope), own in _own(member).items():
            by_scope[name][scope].append(own)
    found: list[list[_Own]] = []
    for name in by_scope.keys() - _TOLD_TOGETHER:
        alike = [mine for mine in by_scope[name].values() if len(mine) > most_alone(len(members))]
        costliest: dict[int, _Own] = {}
        for own in sorted((own for mine in by_scope[name].values() for own in mine), key=_cost):
            costliest[own.rank] = own
        mixed = [costliest[rank] for rank in sorted(costliest)]
        found += alike or ([mixed] if len(mixed) > most_alone(len(members)) else [])
    return found


def _cost(own: _Own) -> tuple[int, float, str]:
    return _rank(own.finding), own.stake_us, own.finding.scope


def _of_one(member: Member, *, is_alone: bool) -> list[Finding]:
    found = [own.finding for own in _own(member).values()]
    if is_alone:
        return [one for one in found if one.id != "straggler"]
    return [replace(one, subject=f"rank {member.rank}") for one in found if one.id not in _TOLD_TOGETHER]


def _own(member: Member) -> dict[tuple[str, str], _Own]:
    """Return what a rank has, of several cycles what at least half of them have."""
    worst: dict[tuple[str, str], dict[int, Finding]] = defaultdict(dict)
    for at, file in enumerate(member.files):
        for one in file.findings:
            kept = worst[one.id, one.scope].setdefault(at, one)
            if (_rank(one), one.time_at_stake_us) > (_rank(kept), kept.time_at_stake_us):
                worst[one.id, one.scope][at] = one
    return {
        key: _Own(
            member.rank,
            mine[min(mine)],  # evidence is of the first file, where it has it
            median([one.time_at_stake_us for one in mine.values()]),
        )
        for key, mine in worst.items()
        if 2 * len(mine) >= len(member.files)
    }


def _rank(one: Finding) -> int:
    return SEVERITIES.index(one.severity)


def _merged(mine: Sequence[_Own], ranks: int, first: int) -> Finding:
    """Put what ranks have in common in one finding; the words and the evidence are those of the first."""
    stakes = sorted(own.stake_us for own in mine)
    severities = sorted(_rank(own.finding) for own in mine)
    own = mine[0]
    whose = f"on all {ranks} ranks" if len(mine) == ranks else f"on {len(mine)} of {ranks} ranks"
    spread = f", {time_range_us(stakes[0], stakes[-1])} at stake on each" if stakes[-1] > 0 else ""
    about = f" The numbers here are rank {own.rank}'s; at stake is the median over the ranks."
    evidence = own.finding.evidence
    if own.rank != first and evidence:  # reports take evidence for that of the first rank
        events = ", ".join(f"{event:,}" for event in evidence[:_EVIDENCE])
        about += f" See events {events} in its file."
        evidence = ()
    return replace(
        own.finding,
        severity=SEVERITIES[severities[len(severities) // 2]],
        time_at_stake_us=round(median(stakes), 3),
        summary=f"{whose}{spread}: {own.finding.summary}",
        cause=own.finding.cause + about,
        evidence=evidence,
    )
