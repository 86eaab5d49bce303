"""How far the ranks' clocks are apart, from the ends of collectives.

No rank leaves an all-reduce, all-gather, reduce-scatter, all-to-all or barrier before all have joined it, and
the last bytes reach all within microseconds: what the ends differ by is the distance of the clocks, and how
much that scatters its error. On one clock ends of large messages differ by up to 19 us, depending on who came
last, those of small ones by 2 us (NCCL 2.28 on H200s): small ones are preferred, and the error is never less.
A broadcast, reduce or gather may be over on one rank long before another: those say nothing. A send and its
receive are asked where there is nothing else. Ranks that share no group are compared through ranks that share
one with both. A distance within its error is taken to be none, as it is on one host.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tracehunch.compare.ranks.model import Clock
from tracehunch.compare.ranks.table import ends_together, is_point_to_point
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.matching import Matches
    from tracehunch.compare.ranks.table import Table
    from tracehunch.trace.model import Int64

_MIDDLE: Final = (2.5, 97.5)
_FEWEST: Final = 9  # collectives, to tell a drift
_FEWEST_SENDS: Final = 4
_SMALL_BYTES: Final = 1 << 20
_SMALL_NS: Final = 2_000
_LARGE_NS: Final = 20_000
"""What ends of small and of other messages differ by on one clock."""
_ENOUGH: Final = 0.8
_SURE: Final = 4.0
_VISIBLE: Final = 2.0
"""A drift has to move a clock by so many standard errors, and by so many errors, during the recording."""
_MOST_PPM: Final = 500.0
"""What no clock is wrong by: a larger slope is something else."""


@dataclass(frozen=True, slots=True)
class _Edge:
    """One member's clock against another's: ahead by ``offset`` at ``at`` and by ``slope`` more each ns."""

    offset: float
    slope: float
    at: int
    error: float
    collectives: int


@dataclass(frozen=True, slots=True)
class _Ends:
    """When collectives ended on one rank, by how much later on another one, and which were small."""

    at_ns: Int64
    distance_ns: Int64
    small: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.at_ns.size

    @classmethod
    def joined(cls, parts: Sequence[_Ends]) -> Self:
        return cls(*(np.concatenate([getattr(one, name) for one in parts]) for name in cls.__slots__))


def clocks(table: Table, matches: Matches, members: Sequence[Member]) -> tuple[Clock, ...]:
    """Return the clock of each member against that of the lowest rank of most that can be compared."""
    edges = _edges(table, matches)
    start = _start(edges, len(members))
    found = {} if start is None else _reached(edges, start)
    return tuple(_clock(member.rank, found.get(at)) for at, member in enumerate(members))


def corrected(stamps_ns: Int64, member: Int64, clocks: Sequence[Clock]) -> Int64:
    """Return stamps by the reference rank's clock."""
    offset = np.array([one.offset_ns for one in clocks], dtype=np.int64)[member]
    at = np.array([one.at_ns for one in clocks], dtype=np.int64)[member]
    drift = np.array([one.drift_ppm for one in clocks], dtype=np.float64)[member]
    moved = np.rint(drift * (stamps_ns - at) / 1e6).astype(np.int64)
    result: Int64 = stamps_ns - offset - moved
    return result


def _clock(rank: int, edge: _Edge | None) -> Clock:
    if edge is None:
        return Clock(rank, 0, 0, 0)
    at = edge.at + round(edge.offset)
    if abs(edge.offset) <= edge.error and not edge.slope:  # no distance that could be told from none
        return Clock(rank, 0, round(edge.error), edge.collectives, 0.0, edge.at)
    return Clock(
        rank, round(edge.offset), round(edge.error), edge.collectives, round(edge.slope * 1e6, 3), at
    )


def _edges(table: Table, matches: Matches) -> Mapping[int, Mapping[int, _Edge]]:
    """Return what groups say: member -> member -> how far it is ahead. Each group is a star."""
    together = np.array([*map(ends_together, table.kinds), False], dtype=bool)
    sends = np.array([*map(is_point_to_point, table.kinds), False], dtype=bool)
    edges = _by_groups(table, matches, together)
    for one, others in _by_groups(table, matches, sends).items():
        for two, edge in others.items():
            if edge.collectives >= _FEWEST_SENDS and two not in edges[one]:
                edges[one][two] = edge
    return edges


def _by_groups(table: Table, matches: Matches, kinds: NDArray[np.bool_]) -> dict[int, dict[int, _Edge]]:
    """Compare the members of each group with the first that recorded most of it."""
    rows = np.flatnonzero((matches.call != ABSENT) & kinds[table.kind])
    order = rows[np.lexsort((table.member[rows], table.group[rows]))]
    bounds = np.flatnonzero(np.diff(table.group[order])) + 1
    found: dict[tuple[int, int], list[_Ends]] = defaultdict(list)
    for mine in np.split(order, bounds) if order.size else ():
        parts = np.split(mine, np.flatnonzero(np.diff(table.member[mine])) + 1)
        enough = _ENOUGH * max(map(len, parts))
        centre = next(part for part in parts if len(part) >= enough)
        for part in parts:
            if part is not centre and len(ends := _shared_ends(table, matches, part, centre)):
                found[int(table.member[centre[0]]), int(table.member[part[0]])].append(ends)
    edges: dict[int, dict[int, _Edge]] = defaultdict(dict)
    for (hub, other), parts_of in found.items():
        edge = _edge(_Ends.joined(parts_of))
        _keep(edges[hub], other, edge)
        _keep(edges[other], hub, _reversed(edge))
    return edges


def _keep(edges: dict[int, _Edge], other: int, edge: _Edge) -> None:
    """Keep the surest of several comparisons."""
    if other not in edges or edges[other].error > edge.error:
        edges[other] = edge


def _shared_ends(table: Table, matches: Matches, own: Int64, other: Int64) -> _Ends:
    _, mine, theirs = np.intersect1d(matches.call[own], matches.call[other], return_indices=True)
    at = table.end_ns[other[theirs]]
    largest = np.maximum(table.in_bytes[own[mine]], table.out_bytes[own[mine]])
    small = (largest >= 0) & (largest <= _SMALL_BYTES)
    return _Ends(at, table.end_ns[own[mine]] - at, small)


def _edge(ends: _Ends) -> _Edge:
    """Fit offset and, where it shows, drift; to small messages if there are enough."""
    few = ends.small.sum() < _FEWEST
    chosen = np.ones_like(ends.small) if few else ends.small
    at_ns, distance_ns = ends.at_ns[chosen], ends.distance_ns[chosen]
    order = np.argsort(at_ns, kind="stable")
    at, distance = at_ns[order], distance_ns[order]
    middle = int(np.median(at))
    slope = _slope(at, distance)
    flat = distance - slope * (at - middle)
    offset = float(np.median(flat))
    low, high = np.percentile(flat, _MIDDLE)
    error = max(float(high - low) / 2, _LARGE_NS if few else _SMALL_NS)
    if slope and abs(slope) * float(at[-1] - at[0]) < _VISIBLE * error:
        slope = 0.0
        offset = float(np.median(distance))
    return _Edge(offset, slope, middle, error, at.size)


def _slope(at: Int64, distance: Int64) -> float:
    """Return the drift by the first and the last third; 0 where it does not stand out from the scatter."""
    third = at.size // 3
    if at.size < _FEWEST or third == 0:
        return 0.0
    ends = (slice(None, third), slice(-third, None))
    moments = [float(np.median(at[one])) for one in ends]
    middles = [float(np.median(distance[one])) for one in ends]
    scatter = sum(float(np.median(np.abs(distance[o] - m))) for o, m in zip(ends, middles, strict=True))
    moved, lasted = middles[1] - middles[0], moments[1] - moments[0]
    needed = _SURE * scatter * 1.48 * (2 / third) ** 0.5
    if lasted <= 0 or abs(moved) < needed or abs(moved / lasted) * 1e6 > _MOST_PPM:
        return 0.0
    return moved / lasted


def _reversed(edge: _Edge) -> _Edge:
    return _Edge(-edge.offset, -edge.slope, edge.at, edge.error, edge.collectives)


def _start(edges: Mapping[int, Mapping[int, _Edge]], members: int) -> int | None:
    """Return the first member of the largest set of members that can be compared."""
    seen: set[int] = set()
    sets: list[list[int]] = []
    for member in range(members):
        if member in seen:
            continue
        reached, left = {member}, [member]
        while left:
            new = set(edges.get(left.pop(), ())) - reached
            reached |= new
            left += new
        seen |= reached
        sets.append(sorted(reached))
    sets.sort(key=lambda one: (-len(one), one[0]))
    return sets[0][0] if sets and len(sets[0]) > 1 else None


def _reached(edges: Mapping[int, Mapping[int, _Edge]], start: int) -> dict[int, _Edge]:
    """Go from member to member by the surest comparisons; offsets and errors add up."""
    first = next(iter(edges[start].values()))
    origin = _Edge(0.0, 0.0, first.at, 0.0, max(one.collectives for one in edges[start].values()))
    found: dict[int, _Edge] = {}
    queue: list[tuple[float, int, int, _Edge]] = [(0.0, start, 0, origin)]
    pushed = 0
    while queue:
        _, member, _, edge = heapq.heappop(queue)
        if member in found:
            continue
        found[member] = edge
        for other, step in edges[member].items():
            if other not in found:
                joined = _joined(edge, step)
                pushed += 1
                heapq.heappush(queue, (joined.error, other, pushed, joined))
    return found


def _joined(first: _Edge, second: _Edge) -> _Edge:
    """Return what two comparisons say together, at the first's moment."""
    offset = first.offset + second.offset + second.slope * (first.at - second.at)
    few = min(first.collectives, second.collectives)
    return _Edge(offset, first.slope + second.slope, first.at, first.error + second.error, few)
