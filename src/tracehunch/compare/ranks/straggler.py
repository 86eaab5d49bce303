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
from tracehunch.compare.ranks.excess import NO_STEP
from tracehunch.compare.ranks.jobs import named
from tracehunch.compare.ranks.since import Since, since
from tracehunch.units import join, printable, share, time_us
from tracehunch.verdict import Confidence, Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

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
_CITED: Final = 20
_AHEAD: Final = 1.5
_STEADY: Final = 0.8
_FEW: Final = 3
_ALIKE: Final = 0.5
_MANY_RANKS: Final = 4
_SLOW_HOST: Final = 0.25


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

    @property
    def stake_ns(self) -> float:
        """What a step would be shorter by: no more than the others wait, nor than it needs more."""
        return min(self.lost_ns, self.excess_ns)


def stragglers(
    members: Sequence[Member], lateness: Lateness, needs: Needs, peers: Peers
) -> tuple[Finding, ...]:
    """Return a finding for each set of peers that has a straggler."""
    found = []
    for mine in peers.sets():
        if len(mine) > 1:
            suspects = _suspects(mine, lateness, needs)
            if suspects:
                found.append(_finding(members, [members[at] for at in mine], suspects, lateness))
    return tuple(one for one in found if one is not None)


def _suspects(peers: Sequence[int], lateness: Lateness, needs: Needs) -> list[_Suspect]:
    """Return who is late for the same reason, the one that costs most first."""
    period = lateness.period_ns() if needs.has_steps else lateness.lasts_ns()
    if not period:
        return []
    by_gpu, by_host = (_by(where, peers, lateness, needs, period) for where in ("gpu", "host"))
    known = {one.member: one.stake_ns for one in by_gpu}
    # A host that goes at the pace of its slow GPU needs more, too.
    found = by_gpu + [one for one in by_host if _ALIKE * one.stake_ns > known.get(one.member, 0.0)]
    found.sort(key=lambda one: (-one.stake_ns, one.member))
    if not found:
        return []
    first = found[0]
    alike = [one for one in found[1:] if one.where == first.where and one.member != first.member
             and one.excess_ns >= _ALIKE * first.excess_ns]  # fmt: skip
    return [first, *alike] if 2 * (len(alike) + 1) < len(peers) else [first]


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
        if when is None or not _is_persistent(own, least, when, float(total)):
            continue
        lost, waited = _lost(member, when, lateness, needs)
        if lost < max(_NOTE * period, _FLOOR_NS) or not (
            needs.has_steps or _is_mostly_last(member, lateness)
        ):
            continue
        lasts = (lateness.period_ns(needs.units[when.first]) if needs.has_steps else None) or period
        mean = float(own[when.late].mean())
        spare = _spare_ns(member, peers, when, needs, lasts) if needs.has_steps else None
        found.append(_Suspect(member, where, when, mean, lost, waited, lasts, spare, needs.has_steps))
    return found


def _least(where: Where, excess: Float64, period: float) -> float:
    """Return what an excess has to be to be more than noise."""
    known = excess[~np.isnan(excess)]
    floor = max((_LEAST_GPU if where == "gpu" else _LEAST_HOST) * period, _FLOOR_NS)
    if excess.shape[0] < 3:  # of two ranks the excess of one is the lack of the other
        return floor
    return max(floor, _SPREADS * 1.48 * float(np.median(np.abs(known - np.median(known)))))


def _is_persistent(own: Float64, least: float, when: Since, total: float) -> bool:
    """Whether it is this rank again and again, not each in its turn."""
    ahead = int((own[when.first :] < -least).sum())
    if ahead > _TURNS * when.number or (when.number < 2 and when.late.size > 1):
        return False
    leads = total > 0 and float(own[when.late].sum()) >= _LEADS * total
    return leads or when.steadiness >= _MOSTLY


def _lost(member: int, when: Since, lateness: Lateness, needs: Needs) -> tuple[float, float]:
    """Return what a rank waited in a step for this one: exposed, and all; in the group that waited most."""
    late_units = {unit for unit, late in zip(needs.units, when.late.tolist(), strict=True) if late}
    units = zip(lateness.recording.tolist(), lateness.steps, strict=True)
    keys = ((recording, NO_STEP if step is None else step) for recording, step in units)
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
    members: Sequence[Member], peers: Sequence[Member], suspects: Sequence[_Suspect], lateness: Lateness
) -> Finding | None:
    """Make the finding; None where a host is slower at everything, and not even in all steps."""
    first = suspects[0]
    member = members[first.member]
    reason = blame(member, peers, first.where, first.excess_ns / 1e3, first.when.part)
    told = first.where == "gpu" or reason.is_told or _is_slow_host(first, len(peers))
    if not told and (first.when.steadiness < _STEADY or first.when.number < _FEW):
        return None
    other = "the other rank" if len(peers) == 2 else "the median rank"  # ranks
    return Finding(
        id=ID,
        scope="ProfilerStep" if first.has_steps else "whole",
        severity=_severity(first, told=told),
        confidence=_confidence(first, len(peers), told=told),
        time_at_stake_us=round(first.stake_ns / 1e3, 3),
        summary=_summary([members[one.member].rank for one in suspects], first, reason, other),
        cause=_cause(first, reason, other),
        fix=_fix(first, reason),
        evidence=_evidence(member, first.member, lateness),
        subject=f"rank {member.rank}",
        per_call=1.0,
    )


def _is_slow_host(suspect: _Suspect, ranks: int) -> bool:
    """Whether a host that is slow in everything stands out among several."""
    return ranks >= _MANY_RANKS and suspect.excess_ns >= _SLOW_HOST * suspect.period_ns


def _severity(suspect: _Suspect, *, told: bool) -> Severity:
    material = suspect.stake_ns >= _WARNING * suspect.period_ns
    once = suspect.has_steps and suspect.when.number == 1
    return "warning" if told and material and not once else "note"


def _confidence(suspect: _Suspect, ranks: int, *, told: bool) -> Confidence:
    if not told or suspect.when.number < 3:  # steps
        return "low"
    return "high" if ranks > 2 or suspect.when.number > 3 else "medium"  # ranks, steps


def _summary(ranks: Sequence[int], first: _Suspect, reason: Blame, other: str) -> str:
    who = f"{named(ranks)} make{'s' if len(ranks) == 1 else ''}"
    part = share(first.lost_ns, max(first.period_ns, first.lost_ns))
    wait = f"{time_us(first.waited_ns / 1e3)}{' a step' if first.has_steps else ''}"
    exposed = f"{time_us(first.lost_ns / 1e3)} of it exposed, {part} of the time"
    return f"{who} the others wait {wait} ({exposed}), {first.when.phrase()}: {_reason(first, reason, other)}"


def _reason(first: _Suspect, reason: Blame, other: str) -> str:
    extra = time_us(first.excess_ns / 1e3)
    if reason.is_told:
        return reason.phrase(other)
    if first.where == "gpu":
        return f"its GPU needs {extra} more for the same ops"
    return f"its host needs {extra} more for the same work, spread over all of it"


def _cause(first: _Suspect, reason: Blame, other: str) -> str:
    where = "GPU" if first.where == "gpu" else "host"
    when = "In these steps" if first.has_steps else "In all"
    parts = [f"{when} its {where} needs {time_us(first.excess_ns / 1e3)} more than that of {other}"]
    if len(reason.ops) > 1:
        parts.append(
            "more in " + join([f"{printable(one.what)} (+{time_us(one.extra_us)})" for one in reason.ops])
        )
    if reason.idle is not None and (reason.ops or reason.only):
        parts.append(f"its GPU is idle for {reason.idle.what} (+{time_us(reason.idle.extra_us)})")
    if reason.finding is not None:
        parts.append(f"look finds {reason.finding.id} on this rank: {reason.finding.summary}")
    text = "; ".join(parts) + ". At stake is the lesser of this and of the exposed waiting."
    if not reason.is_told and first.where == "host" and first.lost_ns > _AHEAD * first.excess_ns:
        text += " The rest of it is no loss: hosts that are ahead wait in each collective for the one behind."
    elif first.spare_ns is not None and first.spare_ns < _ALIKE * first.stake_ns:
        own = time_us((first.period_ns - first.spare_ns) / 1e3)
        text += f" The other ranks need {own} a step themselves, so that less of it may be won."
    return text


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
