"""What a rank does that its peers do not: ops that take longer, or the reason for which its GPU was idle."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median_low
from typing import TYPE_CHECKING, Final

from tracehunch.compare.ranks.per_step import per_step, steps_of
from tracehunch.units import join, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.ranks.excess import Where
    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.model import OpSteps, RankSummary
    from tracehunch.compare.ranks.per_step import Late
    from tracehunch.verdict import Finding

_MOST: Final = 3
_PART: Final = 0.3
"""Part of the excess that one thing has to be to be named as its reason."""
_SLOWER_HOST: Final = 1.5
"""How many times as long an op of a host has to take: hosts differ by less, in everything."""
_AS_THE_REST: Final = 0.5
"""An op that grew no more than twice as much as all others did is not what slows a rank down."""
_OFTEN: Final = 0.5
_CITED: Final = 5
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
    growth: float | None = None  # nothing in particular: how many times as long all ops take together
    most: More | None = None  # of these the op that takes longest

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


def blame(
    member: Member, peers: Sequence[Member], where: Where, *, excess_us: float, part: float, late: Late
) -> Blame:
    """Say what a rank does more, by ``excess_us`` in each of the ``part`` of the steps it was late in."""
    others = [peer for peer in peers if peer is not member]
    times, tables = (gpu_times_us, _gpu_tables) if where == "gpu" else (_host_times, _host_tables)
    ops = _more([late.mean(times, tables, one) or per_step(times, one) for one in (member, *others)])
    if not any(file.steps for file in member.files):  # times are of all recordings
        ops = [one.scaled(part) for one in ops]
    # Of the idle time by cause nobody knows the steps.
    idle = _more([per_step(_idle_times, one) for one in (member, *others)]) if where == "host" else []
    idle = [one.scaled(part) for one in idle]
    finding = _finding(member, others) if where == "host" else None
    finding = finding if _recurs(finding, part * steps_of(member)) else None
    needed = _PART * excess_us
    told = [one for one in ops if one.extra_us >= needed and _stands_out(one, ops, where)]
    rare = [one for one in ops if one.median_us <= _RARE * one.own_us]
    only = rare if sum(one.extra_us for one in rare) >= needed else []
    return Blame(
        where=where,
        ops=tuple(told[:_MOST]),
        only=tuple(only),
        idle=idle[0] if idle and idle[0].extra_us >= needed and finding is not None else None,
        finding=finding,
        growth=None if told or only else _growth(ops),
        most=ops[0] if ops and ops[0].extra_us >= needed else None,
    )


def _recurs(finding: Finding | None, late: float) -> bool:
    """Whether the host was held up about as often as the rank was late, not once, as where a file ends."""
    return finding is not None and len(finding.evidence) >= min(_OFTEN * late, _CITED)


def _stands_out(op: More, ops: Sequence[More], where: Where) -> bool:
    """Whether an op grew by more than everything did: a slower clock makes all ops longer alike."""
    if where == "host" and op.own_us < _SLOWER_HOST * op.median_us:
        return False
    rest_us = sum(one.median_us for one in ops) - op.median_us
    more_us = sum(one.extra_us for one in ops) - op.extra_us
    return more_us * op.median_us < _AS_THE_REST * op.extra_us * rest_us or rest_us < _RARE * op.median_us


def _growth(ops: Sequence[More]) -> float | None:
    median_us = sum(one.median_us for one in ops)
    return 1 + sum(one.extra_us for one in ops) / median_us if median_us else None


def _more(times: Sequence[Mapping[str, float]]) -> list[More]:
    """Return what takes the first rank longer than the (lower) median of the others."""
    own, *others = times
    found = [More(what, us, median_low([one.get(what, 0.0) for one in others])) for what, us in own.items()]
    return sorted(found, key=lambda one: (-one.extra_us, one.what))


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


def _gpu_tables(file: RankSummary) -> OpSteps:
    return file.gpu_steps


def _host_tables(file: RankSummary) -> OpSteps:
    return file.host_steps
