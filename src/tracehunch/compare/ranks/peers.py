"""Which ranks do the same work, as far as the communication shows: stages of a pipeline do not.

Ranks that send to each other are stages of one pipeline. They wait for each other by design, and run other
layers: neither is a straggler of the other, nor odd beside it. Their peers are the ranks that they share a
collective with and no pipeline: the same stage of other replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.compare.ranks.keys import distinct_rows
from tracehunch.compare.ranks.table import is_point_to_point
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.table import Table
    from tracehunch.trace.model import Int64


@dataclass(frozen=True, slots=True)
class Peers:
    """``pipeline`` and ``peers`` number, per member, the set it belongs to; ``staged`` groups mix stages."""

    pipeline: Int64
    peers: Int64
    staged: np.ndarray[tuple[int], np.dtype[np.bool_]]  # per group of the table, one more for ABSENT

    @property
    def has_stages(self) -> bool:
        """Whether any rank is a stage of a pipeline."""
        return np.unique(self.pipeline).size < self.pipeline.size

    def sets(self) -> list[list[int]]:
        """Return the members of each set of peers."""
        return [np.flatnonzero(self.peers == one).tolist() for one in np.unique(self.peers)]

    def among(self, chosen: Sequence[int]) -> list[list[int]]:
        """Return of each set those that are chosen."""
        kept = set(chosen)
        return [[one for one in mine if one in kept] for mine in self.sets()]


def peers_of(table: Table, members: int) -> Peers:
    """Sort the members by what their collectives, sends and receives say."""
    sends = np.array([*map(is_point_to_point, table.kinds), False], dtype=bool)[table.kind]
    known = table.group != ABSENT
    pipeline = _joined(_sets(table, sends & known), members)
    staged = np.zeros(len(table.groups) + 1, dtype=bool)
    everyday = []
    for group, mine in enumerate(_sets(table, ~sends & known, len(table.groups))):
        staged[group] = np.unique(pipeline[mine]).size < len(mine)
        if not staged[group]:
            everyday.append(mine)
    is_staged = np.unique(pipeline).size < members
    peers = _joined(everyday, members) if is_staged else np.zeros(members, dtype=np.int64)
    return Peers(pipeline, peers, staged)


def _sets(
    table: Table, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]], groups: int = 0
) -> list[list[int]]:
    """Return the members that use each group."""
    (of_group, of_member), _ = distinct_rows(table.group[chosen], table.member[chosen])
    found: list[list[int]] = [[] for _ in range(max(groups, int(of_group.max(initial=-1)) + 1))]
    for group, member in zip(of_group.tolist(), of_member.tolist(), strict=True):
        found[group].append(member)
    return found


def _joined(sets: Sequence[Sequence[int]], members: int) -> Int64:
    """Return for each member a number of the set that it is in, directly or through others."""
    parent = list(range(members))

    def root(one: int) -> int:
        while parent[one] != one:
            parent[one] = parent[parent[one]]
            one = parent[one]
        return one

    for mine in sets:
        for other in mine[1:]:
            first, second = sorted((root(mine[0]), root(other)))
            parent[second] = first
    return np.array([root(one) for one in range(members)], dtype=np.int64)
