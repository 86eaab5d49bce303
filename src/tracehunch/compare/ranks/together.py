"""One job out of what its ranks gave: a pure function, the same whatever the order they came in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.compare.ranks.bandwidth import bandwidths
from tracehunch.compare.ranks.clocks import clocks
from tracehunch.compare.ranks.damage import undamaged
from tracehunch.compare.ranks.excess import Needs
from tracehunch.compare.ranks.exposed import exposed
from tracehunch.compare.ranks.hosts import Hosts
from tracehunch.compare.ranks.jobs import choose
from tracehunch.compare.ranks.lateness import Lateness
from tracehunch.compare.ranks.lone import lone_findings
from tracehunch.compare.ranks.matching import match
from tracehunch.compare.ranks.model import Ranks, RankSummary, Unread
from tracehunch.compare.ranks.notices import notices, of_numbering
from tracehunch.compare.ranks.numbering import renumbered, steps_ahead
from tracehunch.compare.ranks.odd import odd_ranks
from tracehunch.compare.ranks.peers import peers_of
from tracehunch.compare.ranks.rows import rows
from tracehunch.compare.ranks.shared import shared_findings
from tracehunch.compare.ranks.straggler import stragglers
from tracehunch.compare.ranks.table import table_of
from tracehunch.compare.ranks.waiting import Arrivals, matched
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.model import Examined
    from tracehunch.compare.ranks.peers import Peers
    from tracehunch.compare.ranks.table import Table
    from tracehunch.trace.model import Int64
    from tracehunch.verdict import Finding


def compare(examined: Sequence[Examined]) -> Ranks:
    """Put the ranks of one job together."""
    unread = tuple(sorted((one for one in examined if isinstance(one, Unread)), key=lambda one: one.source))
    job = choose([one for one in examined if isinstance(one, RankSummary)])
    table = table_of(job.members)
    matches = match(table)
    found = clocks(table, matches, job.members)
    ahead = steps_ahead(table, matches, len(job.members))
    table = renumbered(table, ahead)
    arrivals = Arrivals.of(table, matches, found)
    peers = peers_of(table, len(job.members))
    return Ranks(
        world_size=job.world_size,
        missing=job.missing,
        rows=rows(job.members, arrivals),
        clocks=found,
        matched=matched(arrivals, table, job.members),
        unmatched=matches.unmatched,
        bandwidth=bandwidths(arrivals, table),
        odd=odd_ranks(job.members, peers),
        findings=_findings(job.members, arrivals, table, peers, ahead),
        notices=(
            *job.notices,
            *notices(job.members, table, matches, found, peers),
            *of_numbering(job.members, ahead),
        ),
        unread=unread,
        torch=_distinct(file.torch for member in job.members for file in member.files),
        devices=_distinct(name for member in job.members for file in member.files for name in file.devices),
        other_jobs=job.other_jobs,
    )


def _findings(
    members: Sequence[Member], arrivals: Arrivals, table: Table, peers: Peers, ahead: Int64
) -> tuple[Finding, ...]:
    """Return what is found over all ranks, worst first, then what single ranks have, then what most have."""
    lateness = Lateness.of(arrivals, table, peers)
    needs = Needs.of(members, arrivals, table, ahead)
    late = stragglers(members, lateness, needs, peers)
    found = (*late, *exposed(members, arrivals, table, lateness, Hosts.of(members, needs, late)))
    ranked = sorted(found, key=lambda one: (-SEVERITIES.index(one.severity), -one.time_at_stake_us, one.id))
    whole = undamaged(members)
    common = shared_findings(members, whole, has_straggler=bool(late))
    return (*ranked, *lone_findings(members, peers, whole), *common)


def _distinct(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name}))
