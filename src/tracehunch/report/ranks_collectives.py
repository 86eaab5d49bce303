"""Collectives that were matched across ranks, by kind and size; who is last, and who waits for whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.ranks.model import Bandwidth, Matched, Ranks


_Key = tuple[str, int, str]  # kind, size of the group, kind of group


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """Matched collectives of one kind, kind of process group (of ``groups`` groups) and size class.

    ``took_us`` is from the last arrival to the end; None where a rank may leave before the last one comes, as
    the sender of a broadcast does. ``last_rank`` arrived last most often, ``last_count``
    times; None where arrivals differ by less than the clocks are known to (``clock_error_us``).
    """

    kind: str
    group_size: int
    least_bytes: int | None
    most_bytes: int | None
    count: int
    took_us: float | None
    bus_bytes_per_s: float | None
    skew_us: float
    most_skew_us: float
    clock_error_us: float
    last_rank: int | None
    last_count: int
    group: str = ""
    groups: int = 1


@dataclass(frozen=True, slots=True)
class Late:
    """A rank that others waited for in collectives.

    ``waited_us`` is what all others waited for it together, by rank in ``waiting_us`` (most first), in
    ``collectives`` of the ``among`` that it took part in. ``is_sure``: by more than the clocks' error.
    """

    rank: int
    waited_us: float
    collectives: int
    among: int
    waiting_us: Mapping[int, float]
    is_sure: bool


def collective_rows(ranks: Ranks) -> list[CollectiveRow]:
    """Return the classes of ``Ranks.bandwidth``, and those of unknown size; by the time they take."""
    classes: dict[_Key, list[Bandwidth]] = defaultdict(list)
    for one in ranks.bandwidth:
        classes[one.kind, one.group_size, one.group].append(one)
    members: dict[int | _Key, list[Matched]] = defaultdict(list)
    by_id = {id(one): one for one in ranks.bandwidth}
    for found in ranks.matched:
        key = found.kind, found.group_size, found.group_kind
        members[_class_of(found, classes[key]) if key in classes else key].append(found)
    errors = {one.rank: one.error_ns / 1e3 for one in ranks.clocks}
    rows = [
        _row(inside, by_id.get(key) if isinstance(key, int) else None, errors)
        for key, inside in members.items()
    ]
    return sorted(
        rows,
        key=lambda row: (-row.count * (row.took_us or 0.0), row.kind, row.group_size, row.group, row.count),
    )


def _class_of(found: Matched, classes: Sequence[Bandwidth]) -> int | _Key:
    """Return the identity of the size class that a collective is of; its kind and group where none is."""
    n_bytes = found.bytes
    if n_bytes is not None:
        for one in classes:
            if one.least_bytes <= n_bytes <= one.most_bytes:
                return id(one)
    return found.kind, found.group_size, found.group_kind


def _row(inside: Sequence[Matched], bandwidth: Bandwidth | None, errors: dict[int, float]) -> CollectiveRow:
    skew = median(one.skew_ns for one in inside) / 1e3
    error = max((errors.get(rank, 0.0) for one in inside for rank in one.rows), default=0.0)
    last, times = Counter(one.last_rank for one in inside).most_common(1)[0]
    sizes = [one.bytes for one in inside if one.bytes is not None]
    least, most = min(sizes, default=None), max(sizes, default=None)
    took, rate = median(one.end_ns - one.last_start_ns for one in inside) / 1e3, None
    if bandwidth is not None:
        least, most = bandwidth.least_bytes, bandwidth.most_bytes
        took, rate = bandwidth.median_us, bandwidth.bus_bytes_per_s
    return CollectiveRow(
        kind=inside[0].kind,
        group_size=inside[0].group_size,
        least_bytes=least,
        most_bytes=most,
        count=len(inside),
        took_us=took if took > 0 else None,
        bus_bytes_per_s=rate if took > 0 else None,
        skew_us=skew,
        most_skew_us=max(one.skew_ns for one in inside) / 1e3,
        clock_error_us=error,
        last_rank=last if skew > error else None,
        last_count=times if skew > error else 0,
        group=inside[0].group_kind,
        groups=len({one.group for one in inside}),
    )


def latecomers(ranks: Ranks) -> list[Late]:
    """Return whom the others waited for, the longest first."""
    among = Counter(rank for one in ranks.matched for rank in one.rows)
    last = Counter(one.last_rank for one in ranks.matched if any(one.waited_ns.values()))
    spent: dict[int, Counter[int]] = defaultdict(Counter)
    for one in ranks.matched:
        for rank, waited_ns in one.waited_ns.items():
            if rank != one.last_rank and waited_ns > 0:
                spent[one.last_rank][rank] += waited_ns
    errors = {one.rank: one.error_ns for one in ranks.clocks}
    worst = max(errors.values(), default=0)
    found = []
    for rank, by in spent.items():
        longest = max(by.values())
        waiting = {who: ns / 1e3 for who, ns in sorted(by.items(), key=lambda one: (-one[1], one[0]))}
        is_sure = longest > last[rank] * worst
        found.append(Late(rank, sum(by.values()) / 1e3, last[rank], among[rank], waiting, is_sure))
    return sorted(found, key=lambda late: (-late.waited_us, late.rank))
