"""What a rank does that its peers do not: ops that take longer, or the reason for which its GPU was idle."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING, Final

from tracehunch.units import join, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracehunch.compare.ranks.excess import Where
    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.model import RankSummary
    from tracehunch.verdict import Finding

    Times = Callable[[RankSummary], Mapping[str, float]]

_MOST: Final = 3
_PART: Final = 0.3
"""Part of the excess that one thing has to be to be named as its reason."""
_RARE: Final = 0.1
"""What an op may take on the median rank of what it takes on this one, to be one that only this rank runs."""
_HELPER: Final = ("record_param_comms", "ProfilerStep")
_SPELT: Final = {
    "stall": "host code outside PyTorch",
    "library": "ops computed on the host",
    "copy": "copies from or to pageable memory",
    "allocation": "cudaMalloc and cudaFree",
    "compile": "torch.compile",
    "first-use": "loading kernels for the first time",
    "profiler": "the profiler's own work",
}
_OF_HOSTS: Final = frozenset({
    "host-stall", "sync-stall", "cpu-plan-cost", "allocation-churn", "compile-overhead", "recompile",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class More:
    """One thing that a rank spends more time in, per step: what its peers need, and what it does."""

    what: str
    own_us: float
    median_us: float

    @property
    def extra_us(self) -> float:
        """What it takes longer."""
        return self.own_us - self.median_us

    def scaled(self, part: float) -> More:
        """Lay what is more to the part of the steps in which it happened."""
        return More(self.what, self.median_us + self.extra_us / part, self.median_us)


@dataclass(frozen=True, slots=True)
class Blame:
    """What explains an excess, the largest first; nothing: it is spread over everything."""

    where: Where
    ops: tuple[More, ...]
    only: tuple[More, ...]  # ops that hardly run on other ranks, together a reason
    idle: More | None
    finding: Finding | None

    @property
    def is_told(self) -> bool:
        """Whether something in particular explains it."""
        return bool(self.ops or self.only) or self.idle is not None

    def phrase(self, other: str) -> str:
        """Name the largest reason; ``other``: what it is compared with, as "the median rank"."""
        place = "on the GPU" if self.where == "gpu" else "on the host"
        if self.ops:
            op = self.ops[0]
            took, elsewhere = time_us(op.own_us), _or_none(op.median_us)
            return f"{printable(op.what)} takes {took} {place}, {elsewhere} on {other}"
        if self.only:
            names = join([printable(one.what) for one in self.only[:_MOST]])
            took = time_us(sum(one.own_us for one in self.only))
            return f"{names} take {took} {place}, and hardly run on {other}"
        if self.idle is not None:
            return (f"its GPU is idle for {time_us(self.idle.own_us)} for {self.idle.what}, "
                    f"{_or_none(self.idle.median_us)} on {other}")  # fmt: skip
        return ""


def _or_none(us: float) -> str:
    return time_us(us) if us >= 0.5 else "nothing"  # of a microsecond


def blame(member: Member, peers: Sequence[Member], where: Where, excess_us: float, part: float) -> Blame:
    """Say what a rank does more, by ``excess_us`` in each of the ``part`` of the steps it was late in."""
    others = [peer for peer in peers if peer is not member]
    needed = _PART * excess_us * part
    ops = _more(gpu_times_us if where == "gpu" else _host_times, member, others)
    idle = _more(_idle_times, member, others) if where == "host" else []
    rare = [one for one in ops if one.median_us <= _RARE * one.own_us]
    only = rare if sum(one.extra_us for one in rare) >= needed else []
    return Blame(
        where=where,
        ops=tuple(one.scaled(part) for one in ops[:_MOST] if one.extra_us >= needed),
        only=tuple(one.scaled(part) for one in only),
        idle=idle[0].scaled(part) if idle and idle[0].extra_us >= needed else None,
        finding=_finding(member, others) if where == "host" else None,
    )


def _more(times: Times, member: Member, others: Sequence[Member]) -> list[More]:
    """Return what takes this rank longer than the (lower) median of the others, per step."""
    own = per_step(times, member)
    theirs: dict[str, list[float]] = defaultdict(list)
    for other in others:
        for what, us in per_step(times, other).items():
            theirs[what].append(us)
    found = [
        More(what, us, median_low([*theirs[what], *[0.0] * (len(others) - len(theirs[what]))]))
        for what, us in own.items()
    ]
    return sorted((one for one in found if one.extra_us > 0), key=lambda one: (-one.extra_us, one.what))


def per_step(times: Times, member: Member) -> Mapping[str, float]:
    """Return times of all files of a rank, divided by its steps (1 where it has none)."""
    total: dict[str, float] = defaultdict(float)
    steps = sum(len(file.steps) for file in member.files) or 1
    for file in member.files:
        for what, us in times(file).items():
            total[what] += us / steps
    return total


def gpu_times_us(file: RankSummary) -> Mapping[str, float]:
    """GPU time by op without communication, which waits."""
    column = file.collectives
    calling = {column.ops[op] for op in set(column.op.tolist()) if op >= 0}
    left_out = {*calling, *_HELPER, ""}
    return {op: us for op, us in file.gpu_time_us_by_op.items() if op not in left_out}


def _host_times(file: RankSummary) -> Mapping[str, float]:
    return {op: us for op, us in file.host_time_us_by_op.items() if op not in _HELPER}


def _idle_times(file: RankSummary) -> Mapping[str, float]:
    total: dict[str, float] = defaultdict(float)
    for part in file.breakdown:
        for cause, idle_ns in part.idle_ns.items():
            if cause in _SPELT:
                total[_SPELT[cause]] += idle_ns / 1e3
    return total


def _finding(member: Member, others: Sequence[Member]) -> Finding | None:
    """Return what look found on this rank about its host, and on less than half of the others."""
    found = [
        one
        for file in member.files
        for one in file.findings
        if one.id in _OF_HOSTS and one.severity != "note"
    ]
    if not found:
        return None
    known = [
        {one.id for file in other.files for one in file.findings if one.severity != "note"}
        for other in others
    ]
    mine = [one for one in found if 2 * sum(one.id in ids for ids in known) < len(known)]
    return max(mine, key=lambda one: (one.time_at_stake_us, one.id), default=None)
