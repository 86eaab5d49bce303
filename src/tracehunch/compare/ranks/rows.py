"""One line of the report for each rank."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.compare.ranks.damage import is_cut
from tracehunch.compare.ranks.model import RankRow
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.model import Breakdown
    from tracehunch.compare.ranks.waiting import Arrivals
    from tracehunch.trace.model import Int64


def rows(members: Sequence[Member], arrivals: Arrivals) -> tuple[RankRow, ...]:
    """Return the lines, by rank; ``made_wait_ns`` is laid to the rank that came last."""
    waited = _sums(arrivals.member, arrivals.waited_ns, len(members))
    last = arrivals.member[arrivals.last_at][arrivals.call] if arrivals.calls else arrivals.member
    made = _sums(last, arrivals.waited_ns, len(members))
    seen = np.bincount(arrivals.member, minlength=len(members)) > 0
    return tuple(
        _row(member, int(waited[at]) if seen[at] else None, int(made[at]) if seen[at] else None)
        for at, member in enumerate(members)
    )


def _sums(member: Int64, values: Int64, members: int) -> Int64:
    total = np.zeros(members, dtype=np.int64)
    np.add.at(total, member, values)
    return total


def _row(member: Member, waited_ns: int | None, made_wait_ns: int | None) -> RankRow:
    parts = [part for file in member.files for part in file.breakdown]
    lengths = [(step.end_ns - step.start_ns) / 1e3 for file in member.files for step in file.steps]
    return RankRow(
        rank=member.rank,
        labels=tuple(printable(file.label) for file in member.files),
        rank_from=member.rank_from,
        steps=len(lengths),
        step_us=round(median(lengths), 3) if lengths else None,
        window_ns=sum(part.window_ns for part in parts),
        compute_ns=sum(part.compute_ns for part in parts),
        exposed_communication_ns=sum(part.exposed_communication_ns for part in parts),
        copy_ns=sum(part.copy_ns for part in parts),
        idle_ns=_idle(parts),
        communication_ns=sum(part.communication_ns for part in parts),
        overlapped_ns=sum(part.overlapped_ns for part in parts),
        waited_ns=waited_ns,
        made_wait_ns=made_wait_ns,
        is_cut=is_cut(member),
        sources=tuple(file.source for file in member.files),
        job_step_us=_job_step_us(member),
    )


def _job_step_us(member: Member) -> float | None:
    """Return recorded time a step: unlike a step of the host, it has the GPU's time after the last one."""
    steps = sum(len(file.steps) for file in member.files)
    windows = [max(part.window_ns for part in file.breakdown) for file in member.files if file.breakdown]
    return round(sum(windows) / 1e3 / steps, 3) if steps and len(windows) == len(member.files) else None


def _idle(parts: Sequence[Breakdown]) -> Mapping[str, int]:
    total: dict[str, int] = defaultdict(int)
    for part in parts:
        for cause, idle_ns in part.idle_ns.items():
            total[cause] += idle_ns
    return dict(sorted(total.items()))
