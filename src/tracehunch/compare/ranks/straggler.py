"""straggler, over all ranks: who makes the others wait, with what, since when, and what that costs a step.

A rank is a straggler where it needs more than its peers for a step, on its GPU or on its host, again and
again, and its peers wait in collectives for it. Waiting alone does not make one: a rank whose host runs ahead
waits in each collective for the other, and loses nothing. Nor does more work alone, if nobody waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.blame import Blame, blame
from tracehunch.compare.ranks.damage import comparable
from tracehunch.compare.ranks.excess import NO_STEP
from tracehunch.compare.ranks.jobs import named
from tracehunch.compare.ranks.per_step import Late
from tracehunch.compare.ranks.since import Since, since
from tracehunch.units import join, printable, share, time_us
from tracehunch.verdict import Confidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.ranks.excess import Needs, Where
    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.lateness import Lateness
    from tracehunch.compare.ranks.peers import Peers
    from tracehunch.trace.model import Float64

ID: Final = "straggler"
_WARNING: Final = 0.05
_NOTE: Final = 0.01
"""Parts of a step that the others have to wait."""
_LEAST_GPU: Final = 0.03
_LEAST_HOST: Final = 0.08
"""Parts of a step that a rank has to need more: the same host work takes a tenth more or less anyway."""
_SPREADS: Final = 5.0
_TURNS: Final = 0.25
"""How often a rank may be the quicker one instead, where it is late."""
_MOSTLY: Final = 0.7
_LEADS: Final = 0.6
_FLOOR_NS: Final = 20_000
_FEWEST_IN_HALF: Final = 4
_PLAINLY: Final = 0.15
"""Ranks by which a quicker half tells how much all scatter; of fewer, the part of a step to stand out by."""
_CITED: Final = 20
_AHEAD: Final = 1.5
_STEADY: Final = 0.8
_FEW: Final = 3
_NEARLY: Final = 0.95
_MANY_STEPS: Final = 20
"""In which a host has to be slower than the other one, in nothing in particular, to be worth a note."""
_ALIKE: Final = 0.5
_MANY_RANKS: Final = 4
_SLOW_HOST: Final = 0.25
_APART: Final = 2.0


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A rank that needs more than its peers, and for which they wait; means of the units it was late in."""

    member: int
    where: Where
    when: Since
    excess_ns: float
    lost_ns: float  # exposed waiting of a typical rank of the group that lost most
    waited_ns: float  # the same with what was hidden behind compute
    period_ns: float
    spare_ns: float | None  # by how much a step could be shorter before the others' own work fills it
    has_steps: bool
    is_apart: bool  # all others are alike beside it
    units: frozenset[tuple[int, int]]  # in which it was late

    @property
    def stake_ns(self) -> float:
        """What a step would be shorter by.

        No more than the others wait, than it needs more, and than the others' own work leaves of the step.
        """
        return self.cost_ns if self.spare_ns is None else min(self.cost_ns, self.spare_ns)

    @property
    def cost_ns(self) -> float:
        """What the others wait for its doing more."""
        return min(self.lost_ns, self.excess_ns)

    @property
    def is_filled(self) -> bool:
        """Whether it is the others' own work that bounds what can be won."""
        return self.stake_ns < _NEARLY * self.cost_ns


def stragglers(
    members: Sequence[Member], lateness: Lateness, needs: Needs, peers: Peers
) -> tuple[Finding, ...]:
    """Return the findings of each set of peers: one for each reason why ranks are late."""
    found = []
    ahead = {member.rank: by for member, by in zip(members, needs.ahead, strict=False)}
    for mine in peers.among(comparable(members)):
        if len(mine) > 1:
            found += [
                _finding(members, [members[at] for at in mine], suspects, lateness, ahead)
                for suspects in _by_reason(_suspects(mine, lateness, needs.shared(mine)), len(mine))
            ]
    return tuple(one for one in found if one is not None)


def _suspects(peers: Sequence[int], lateness: Lateness, needs: Needs) -> list[_Suspect]:
    """Return who is late, the one that costs most first."""
    period = lateness.period_ns() if needs.has_steps else lateness.lasts_ns()
    if not period:
        return []
    by_gpu, by_host = (_by(where, peers, lateness, needs, period) for where in ("gpu", "host"))
    known = {one.member: one.cost_ns for one in by_gpu}
    # A host that goes at the pace of its slow GPU needs more, too.
    found = by_gpu + [one for one in by_host if _ALIKE * one.cost_ns > known.get(one.member, 0.0)]
    return sorted(found, key=lambda one: (-one.cost_ns, one.member))


def _by_reason(suspects: Sequence[_Suspect], ranks: int) -> list[list[_Suspect]]:
    """Put together who is late for the same reason. At most half of the ranks can be unlike the others."""
    found: list[list[_Suspect]] = []
    left, named = list(suspects), 0
    while left:
        first = left[0]
        alike = [one for one in left[1:] if one.where == first.where and one.member != first.member
                 and one.excess_ns >= _ALIKE * first.excess_ns]  # fmt: skip
        named += 1 + len(alike)
        if 2 * named > ranks:
            return found or [[first]]
        found.append([first, *alike])
        late = {one.member for one in found[-1]}
        left = [one for one in left if one.member not in late]
    return found


def _by(
    where: Where, peers: Sequence[int], lateness: Lateness, needs: Needs, period: float
) -> list[_Suspect]:
    excess = needs.excess_ns(where, peers)
    if np.isnan(excess).all():
        return []
    least = _least(where, excess, period)
    total = np.nansum(np.maximum(np.where(excess > least, excess, 0), 0))
    found = []
    for at, member in enumerate(peers):
        own = np.nan_to_num(excess[at])
        when = since(own, least, [step for _, step in needs.units])
        if when is None or not _is_persistent(own, least, when, float(total), period):
            continue
        lost, waited = _lost(member, when, lateness, needs)
        if lost < max(_NOTE * period, _FLOOR_NS) or not (
            needs.has_steps or _is_mostly_last(member, lateness)
        ):
            continue
        late_units = {needs.units[unit] for unit in np.flatnonzero(when.late).tolist()}
        lasts = (lateness.period_ns(late_units) if needs.has_steps else None) or period
        mean = float(own[when.late].mean())
        spare = _spare_ns(member, peers, when, needs, lasts) if needs.has_steps else None
        apart = _is_apart(excess, at, when)
        late = frozenset(late_units)
        found.append(
            _Suspect(member, where, when, mean, lost, waited, lasts, spare, needs.has_steps, apart, late)
        )
    return found


def _is_apart(excess: Float64, at: int, when: Since) -> bool:
    """Whether the others, in the steps in which a rank was late, are much nearer to each other than to it."""
    if excess.shape[0] < _MANY_RANKS or when.number < _FEW or when.steadiness < _STEADY:
        return False
    known = excess[:, when.late]
    known = known[~np.isnan(known).any(axis=1) | (np.arange(len(known)) == at)]
    usual = np.median(np.nan_to_num(known), axis=1)
    own = np.nanmedian(excess[at, when.late])
    others = np.delete(usual, np.flatnonzero(usual == own)[:1])
    return others.size + 1 >= _MANY_RANKS and bool(own - others.max() > _APART * np.ptp(others))


def _least(where: Where, excess: Float64, period: float) -> float:
    """Return what an excess has to be to be more than noise."""
    floor = max((_LEAST_GPU if where == "gpu" else _LEAST_HOST) * period, _FLOOR_NS)
    told = ~np.isnan(excess)
    told[:, told.sum(axis=0) < 3] = False  # of two ranks the excess of one is the lack of the other
    if not told.any():
        return floor
    known = excess[told]
    spread = float(np.median(np.abs(known - np.median(known))))
    half = _SPREADS * 1.48 * _quicker_half(np.where(told, excess, np.nan))
    if excess.shape[0] < 2 * _FEWEST_IN_HALF:  # ranks
        half = max(half, _PLAINLY * period)
    return max(floor, min(_SPREADS * 1.48 * spread, half))


def _quicker_half(excess: Float64) -> float:
    """Return by how much the quicker half of the ranks differ in the usual step; inf: too few to tell.

    Where the other half is slower, as one of two hosts, the spread of all is the distance of the halves.
    """
    half = excess.shape[0] // 2
    if half < 2:  # ranks
        return np.inf
    quicker = np.sort(excess, axis=0)[:half]  # nan comes last
    quicker = quicker[:, ~np.isnan(quicker).any(axis=0)]
    return float(np.median(np.ptp(quicker, axis=0))) if quicker.size else np.inf


def _is_persistent(own: Float64, least: float, when: Since, total: float, period: float) -> bool:
    """Whether it is this rank again and again, not each in its turn; or once, for as long as a step."""
    ahead = int((own[when.first :] < -least).sum())
    if ahead > _TURNS * when.number:
        return False
    late = float(own[when.late].sum())
    leads = total > 0 and late >= _LEADS * total
    if when.number < 2 and when.late.size > 1:
        return leads and late >= period
    return leads or when.steadiness >= _MOSTLY


def _lost(member: int, when: Since, lateness: Lateness, needs: Needs) -> tuple[float, float]:
    """Return what a rank waited in a step for this one: exposed, and all; in the group that waited most.

    Means of the steps in which lateness counts anywhere: of the others nobody knows.
    """
    heard = when.late & lateness.heard(needs.units) if needs.has_steps else when.late
    late_units = {needs.units[at] for at in np.flatnonzero(heard).tolist()}
    units = zip(lateness.recording.tolist(), lateness.steps, strict=True)
    keys = [(recording, NO_STEP if step is None else step) for recording, step in units]
    chosen = np.array([key in late_units for key in keys], dtype=bool)
    if not chosen.any():
        return 0.0, 0.0
    mine = (lateness.member == member) & chosen[lateness.unit]
    mine &= (lateness.late_ns > 0) & (lateness.late_ns >= lateness.worst_ns * _ALIKE)
    exposed = _most_by_group(lateness.group[mine], lateness.others_exposed_ns[mine])
    waited = _most_by_group(lateness.group[mine], lateness.others_waited_ns[mine])
    return exposed / len(late_units), waited / len(late_units)


def _is_mostly_last(member: int, lateness: Lateness) -> bool:
    """Whether most of the lateness in the collectives of a rank is its own."""
    mine = lateness.member == member
    worst = float(lateness.worst_ns[mine].sum())
    return worst > 0 and float(np.maximum(lateness.late_ns[mine], 0).sum()) >= _MOSTLY * worst


def _most_by_group(group: np.ndarray[tuple[int], np.dtype[np.int64]], values: Float64) -> float:
    return float(np.bincount(group, weights=values).max()) if group.size else 0.0


def _spare_ns(member: int, peers: Sequence[int], when: Since, needs: Needs, period: float) -> float | None:
    """Return by how much the job would be quicker if this rank needed nothing: the others fill the rest."""
    own = needs.own_ns()[[one for one in peers if one != member]][:, when.late]
    if np.isnan(own).all():
        return None
    return max(period - float(np.nanmedian(own)), 0.0)


def _finding(
    members: Sequence[Member],
    peers: Sequence[Member],
    suspects: Sequence[_Suspect],
    lateness: Lateness,
    ahead: Mapping[int, int],
) -> Finding | None:
    """Make the finding; None where a host is slower at everything, and not even in all of many steps."""
    first = suspects[0]
    member = members[first.member]
    late = Late(first.units, ahead)
    reason = blame(
        member, peers, first.where, excess_us=first.excess_ns / 1e3, part=first.when.part, late=late
    )
    told = first.where == "gpu" or reason.is_told or first.is_apart or _is_slow_host(first, len(peers))
    if not told and (first.when.steadiness < _STEADY or first.when.number < _MANY_STEPS):
        return None
    other = "the other rank" if len(peers) == 2 else "the median rank"  # ranks
    whose = "its" if len(suspects) == 1 else f"rank {member.rank}'s"
    return Finding(
        id=ID,
        scope="ProfilerStep" if first.has_steps else "whole",
        severity=_severity(first, told=told),
        confidence=_confidence(first, len(peers), told=told),
        time_at_stake_us=round(first.stake_ns / 1e3, 3),
        summary=_summary(sorted(members[one.member].rank for one in suspects), first, reason, other, whose),
        cause=_cause(first, reason, other, whose),
        fix=_fix(first, reason),
        evidence=_evidence(member, first.member, lateness),
        subject=f"rank {member.rank}",
        per_call=1.0,
    )


def _is_slow_host(suspect: _Suspect, ranks: int) -> bool:
    """Whether a host that is slow in everything stands out among several."""
    return ranks >= _MANY_RANKS and suspect.excess_ns >= _SLOW_HOST * suspect.period_ns


def _severity(suspect: _Suspect, *, told: bool) -> Severity:
    """Warn of what the others wait for long, unless nearly nothing is won by mending it."""
    cost, stake = suspect.cost_ns, suspect.stake_ns
    material = cost >= _WARNING * suspect.period_ns and stake >= _NOTE * suspect.period_ns
    once = suspect.has_steps and suspect.when.number == 1
    return "warning" if told and material and not once else "note"


def _confidence(suspect: _Suspect, ranks: int, *, told: bool) -> Confidence:
    if not told or suspect.when.number < 3:  # steps
        return "low"
    return "high" if ranks > 2 or suspect.when.number > 3 else "medium"  # ranks, steps


def _summary(ranks: Sequence[int], first: _Suspect, reason: Blame, other: str, whose: str) -> str:
    who = f"{named(ranks)} make{'s' if len(ranks) == 1 else ''}"
    part = share(first.lost_ns, max(first.period_ns, first.lost_ns))
    wait = f"{time_us(first.waited_ns / 1e3)}{' a step' if first.has_steps else ''}"
    exposed = f"{time_us(first.lost_ns / 1e3)} of it exposed, {part} of the time"
    why = _reason(first, reason, other, whose)
    return f"{who} the others wait {wait} ({exposed}), {first.when.phrase()}: {why}"


def _reason(first: _Suspect, reason: Blame, other: str, whose: str) -> str:
    extra = time_us(first.excess_ns / 1e3)
    if reason.is_told:
        return reason.phrase(other)
    if first.where == "gpu":
        longer = f", {reason.growth:.2f}x what they take on {other}" if reason.growth else ""
        most = (
            f", most in {printable(reason.most.what)} (+{time_us(reason.most.extra_us)})"
            if reason.most
            else ""
        )
        return f"{whose} GPU needs {extra} more for the same ops{longer}{most}"
    return f"{whose} host needs {extra} more for the same work, spread over all of it"


def _cause(first: _Suspect, reason: Blame, other: str, whose: str) -> str:
    where = "GPU" if first.where == "gpu" else "host"
    when = "In these steps" if first.has_steps else "In all"
    parts = [f"{when} {whose} {where} needs {time_us(first.excess_ns / 1e3)} more than that of {other}"]
    if len(reason.ops) > 1:
        parts.append(
            "more in " + join([f"{printable(one.what)} (+{time_us(one.extra_us)})" for one in reason.ops])
        )
    if reason.idle is not None and (reason.ops or reason.only):
        parts.append(f"its GPU is idle for {reason.idle.what} (+{time_us(reason.idle.extra_us)})")
    if reason.finding is not None:
        parts.append(f"look finds {reason.finding.id} on this rank: {reason.finding.summary}")
    text = "; ".join(parts) + ". " + _stake_text(first)
    if not reason.is_told and first.where == "host" and first.lost_ns > _AHEAD * first.excess_ns:
        text += " The rest of it is no loss: hosts that are ahead wait in each collective for the one behind."
    return text


def _stake_text(first: _Suspect) -> str:
    if not first.is_filled or first.spare_ns is None:
        return "At stake is the lesser of this and of the exposed waiting."
    lasts, own = time_us(first.period_ns / 1e3), time_us((first.period_ns - first.spare_ns) / 1e3)
    return (
        f"Of a step of {lasts} the other ranks need {own} themselves, host or GPU: no more than the rest of "
        "it can be won, and is at stake."
    )


def _evidence(member: Member, at: int, lateness: Lateness) -> tuple[int, ...]:
    """Return the kernels for which the others waited longest, as positions in the rank's first file."""
    events = member.files[0].collectives.event
    mine = np.flatnonzero((lateness.member == at) & (lateness.late_ns > 0) & (lateness.row < events.size))
    longest = mine[np.argsort(-lateness.late_ns[mine], kind="stable")[:_CITED]]
    return tuple(sorted(events[lateness.row[longest]].tolist()))


def _fix(first: _Suspect, reason: Blame) -> str:
    if first.where == "gpu":
        return (
            "Give all ranks the same work: even batches and lengths, no extra passes (evaluation, logging) "
            "on one rank. If it has the same, look at that GPU: clocks, temperature, another process."
        )
    loading = reason.finding is not None and "batch" in reason.finding.summary
    if loading or any("DataLoader" in one.what for one in reason.ops):
        return (
            "More DataLoader workers (num_workers, pin_memory, persistent_workers), and even shards of data."
        )
    if reason.is_told:
        return "Move that work off the step: to all ranks alike, to another thread or process, or less often."
    return (
        "Look at that host: CPU clocks, pinning to cores and NUMA node (numactl), other processes. Less to "
        "launch makes all ranks quicker: torch.compile, CUDA graphs."
    )
