"""What look finds on one rank, or a few, and not on the others."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tracehunch.compare.ranks.jobs import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.peers import Peers
    from tracehunch.verdict import Finding

_TOLD_TOGETHER: Final = frozenset({"straggler", "exposed-communication"})
_BY_CHANCE: Final = frozenset(
    {
        "clock-jitter",
        "profiler-artifact",
        "sync-stall",
        "cold-start",
        "overhead-bound",
        "gpu-gap",
        "occupancy-explained",
    }
)
"""What depends on how long a rank waited for the others, or on the profiler."""
_FEW: Final = 1 / 3


def lone_findings(members: Sequence[Member], peers: Peers, whole: Sequence[int]) -> tuple[Finding, ...]:
    """Return the warnings of at most a third of the peers (of two ranks: of one) that the others lack.

    ``whole``: positions of the ranks whose files are: what others lack they may have lost.
    """
    found: list[Finding] = []
    for mine in peers.among(whole):
        if len(mine) > 1:  # a rank alone lacks nothing
            found += _lone([members[at] for at in mine])
    return tuple(sorted(found, key=lambda one: (-one.time_at_stake_us, one.id, one.scope, one.subject)))


def most_alone(ranks: int) -> int:
    """Return how many of so many ranks may have something that is still no common thing."""
    return max(1, int(_FEW * ranks))


def _lone(group: Sequence[Member]) -> list[Finding]:
    having: dict[str, set[int]] = defaultdict(set)
    worst: dict[str, Finding] = {}
    for member in group:
        for one in (one for file in member.files for one in file.findings):
            having[one.id].add(member.rank)
            if one.severity != "note" and one.id not in _TOLD_TOGETHER | _BY_CHANCE:
                kept = worst.setdefault(one.id, _named(one, member.rank))
                if kept.time_at_stake_us < one.time_at_stake_us:
                    worst[one.id] = _named(one, member.rank)
    most = most_alone(len(group))
    return [
        _with_ranks(one, sorted(having[name]), len(group))
        for name, one in worst.items()
        if len(having[name]) <= most
    ]


def _named(one: Finding, rank: int) -> Finding:
    return replace(one, subject=f"rank {rank}")


def _with_ranks(one: Finding, ranks: Sequence[int], of: int) -> Finding:
    return replace(one, summary=f"{named(ranks)} only, of {of}: {one.summary}")
