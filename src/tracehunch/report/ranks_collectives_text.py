"""Collectives, and who waits for whom, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.report.ranks_collectives import latecomers
from tracehunch.report.ranks_words import UNKNOWN, bytes_text
from tracehunch.units import bandwidth, count, plural, printable, share, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Ranks
    from tracehunch.report.ranks_collectives import CollectiveRow, Late


_WORTH: Final = 0.05
"""Part of the longest wait from which on another is worth a line."""

_WAITING: Final = 3
"""Ranks that waited for one that are named."""


@dataclass(frozen=True, slots=True)
class CollectiveText:
    """Collectives of one kind and size in words; ``rate`` is the bus bandwidth in GB/s, without unit."""

    kind: str
    group_size: str
    message: str
    count: str
    took: str
    bandwidth: str
    rate: str
    skew: str
    last: str
    group: str


def collective_texts(rows: Sequence[CollectiveRow]) -> list[CollectiveText]:
    """Return the rows in words."""
    return [
        CollectiveText(
            kind=printable(row.kind),
            group_size=count(row.group_size),
            message=bytes_text(row.least_bytes, row.most_bytes),
            count=count(row.count),
            took=UNKNOWN if row.took_us is None else time_us(row.took_us),
            bandwidth=UNKNOWN if row.bus_bytes_per_s is None else bandwidth(row.bus_bytes_per_s),
            rate=UNKNOWN if row.bus_bytes_per_s is None else f"{row.bus_bytes_per_s / 1e9:,.1f}",
            skew=time_us(row.skew_us),
            last=_last(row),
            group=printable(row.group) or UNKNOWN,
        )
        for row in rows
    ]


def several_groups(rows: Sequence[CollectiveRow]) -> bool:
    """Whether there are collectives of more than one kind of process group, so that a table tells which."""
    return len({row.group for row in rows}) > 1


def _last(row: CollectiveRow) -> str:
    """``3 (97%)``: the rank that came last most often, and how often; "?" within the clocks' error."""
    return UNKNOWN if row.last_rank is None else f"{row.last_rank} ({share(row.last_count, row.count)})"


WAITS: Final = (
    "Waiting alone loses no time: a rank whose host merely runs ahead waits at each collective. Which rank "
    "costs the others time is a finding, straggler."
)


def late_texts(ranks: Ranks) -> list[str]:
    """Say whom the others waited for, by more than the clocks' error; the longest first.

    ``rank 1 came last to 45 of 60 collectives; 3 ranks waited 36.00 ms for it: rank 0 12.00 ms ...``
    """
    found = [one for one in latecomers(ranks) if one.is_sure]
    return [_late_text(one) for one in found if one.waited_us >= _WORTH * found[0].waited_us]


def _late_text(one: Late) -> str:
    said = f"rank {one.rank} came last to {count(one.collectives)} of {plural(one.among, 'collective')}; "
    each = [f"rank {rank} {time_us(us)}" for rank, us in one.waiting_us.items()]
    if len(each) == 1:
        return f"{said}rank {next(iter(one.waiting_us))} waited {time_us(one.waited_us)} for it"
    more = f" and {plural(len(each) - _WAITING, 'more rank')}" if len(each) > _WAITING else ""
    return (
        f"{said}{plural(len(each), 'rank')} waited {time_us(one.waited_us)} for it, all together: "
        f"{', '.join(each[:_WAITING])}{more}"
    )


def why_none(ranks: Ranks) -> str:
    """Say why there are no collectives to show."""
    if len(ranks.rows) < 2:  # ranks
        return "collectives are matched across ranks, and there is one rank alone"
    if ranks.unmatched:
        matched = "none of them could be matched, so nobody can say who waits for whom"
        return f"{plural(ranks.unmatched, 'collective')} recorded; {matched}"
    return "no collective with GPU kernels was recorded, so nobody can say who waits for whom"


def unmatched_text(ranks: Ranks) -> str:
    """Say how many collectives have no partner; "" for none."""
    if not ranks.unmatched:
        return ""
    lost = plural(ranks.unmatched, "collective")
    return f"{lost} matched with no other rank's: left out of arrivals and waits"


def untold_text(texts: Sequence[CollectiveText]) -> str:
    """Say what a "?" in the table stands for; "" where there is none."""
    reasons = {
        "took": "a rank may leave before the last one comes, as the sender of a broadcast",
        "group": "which process group it was in was not recorded",
        "message": "sizes were not recorded",
        "rate": "bus bandwidth is not defined for the kind, or needs time, size and all ranks of the group",
        "last": "ranks come nearer to each other than their clocks are known",
    }
    if all(one.group == UNKNOWN for one in texts):  # the table does not show it
        del reasons["group"]
    met = [why for field, why in reasons.items() if any(getattr(one, field) == UNKNOWN for one in texts)]
    return f"{UNKNOWN}: cannot be told: {'; '.join(met)}." if met else ""
