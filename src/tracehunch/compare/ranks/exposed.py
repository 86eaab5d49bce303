"""exposed-communication, over all ranks: how much of it moves data, and how much is waiting for other ranks.

Exposed is what no compute kernel on the same device runs beside. Of a matched collective that is exposed, the
part until its last rank arrived is waiting, in proportion where compute overlaps some of it; the rest moves
data. Means over the ranks, so that the parts add up. At stake is what moves data, at most the compute that
runs with no communication beside it, for no more can hide it. What is waited is the straggler's to answer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tracehunch.compare.ranks.table import is_point_to_point
from tracehunch.units import percent, plural, share, time_us
from tracehunch.verdict import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.ranks.excess import Needs
    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.lateness import Lateness
    from tracehunch.compare.ranks.table import Table
    from tracehunch.compare.ranks.waiting import Arrivals

ID: Final = "exposed-communication"
_WARNING: Final = 0.1
_NOTE: Final = 0.01
_MOSTLY_IDLE: Final = 0.5
_MOSTLY: Final = 0.7
_MUCH: Final = 0.05
_CITED: Final = 20


@dataclass(frozen=True, slots=True)
class _Exposed:
    """Means over the ranks, of a step (of the recording where there are no steps), in nanoseconds."""

    exposed: float
    waiting: float  # for other ranks, in collectives
    bubble: float  # the same in sends and receives: between stages of a pipeline
    unmatched: float  # of which nobody can say
    hideable: float  # compute with no communication beside it
    idle: float  # of the window, but for what the device needs
    lasts: float  # a step
    by_kind: Mapping[str, float]  # what moves data
    has_steps: bool

    @property
    def moving(self) -> float:
        return max(self.exposed - self.waiting - self.bubble - self.unmatched, 0.0)

    @classmethod
    def of(
        cls, members: Sequence[Member], arrivals: Arrivals, table: Table, lateness: Lateness
    ) -> Self | None:
        files = [file for member in members for file in member.files]
        parts = [part for file in files for part in file.breakdown]
        steps = sum(len(file.steps) for file in files)
        units = steps or len(members)
        if not parts:
            return None
        sends = np.array([*map(is_point_to_point, table.kinds), False], dtype=bool)[table.kind[arrivals.row]]
        waits = arrivals.exposed_wait_ns
        window = sum(part.window_ns for part in parts)
        period = lateness.period_ns() if steps else None
        left = table.exposed_ns.sum() - arrivals.exposed_ns.sum()
        return cls(
            exposed=sum(part.exposed_communication_ns for part in parts) / units,
            waiting=float(waits[~sends].sum()) / units,
            bubble=float(waits[sends].sum()) / units,
            unmatched=float(left) / units,
            hideable=sum(max(part.compute_ns - part.overlapped_ns, 0) for part in parts) / units,
            idle=sum(part.whole_idle_ns - part.idle_ns.get("device", 0) for part in parts) / max(window, 1),
            lasts=period or _step_ns(members) or window / len(members),
            by_kind=_by_kind(arrivals, table),
            has_steps=steps > 0,
        )


def _step_ns(members: Sequence[Member]) -> float | None:
    lengths = [
        step.end_ns - step.start_ns for member in members for file in member.files for step in file.steps
    ]
    return float(np.median(lengths)) if lengths else None


def _by_kind(arrivals: Arrivals, table: Table) -> Mapping[str, float]:
    total: dict[str, float] = defaultdict(float)
    moving = arrivals.exposed_ns - arrivals.exposed_wait_ns
    kind = table.kind[arrivals.row]
    for code in np.unique(kind).tolist():
        total[table.kinds[code]] += float(moving[kind == code].sum())
    return total


def exposed(
    members: Sequence[Member], arrivals: Arrivals, table: Table, lateness: Lateness, needs: Needs
) -> tuple[Finding, ...]:
    """Return the finding, if anything material is exposed on a job of several ranks."""
    found = _Exposed.of(members, arrivals, table, lateness) if len(members) > 1 else None  # ranks
    if found is None or not arrivals.calls or found.exposed < _NOTE * found.lasts:
        return ()
    stake = min(found.moving, found.hideable)
    of = "a step" if found.has_steps else "in this recording"
    first = members[0]
    events = first.files[0].collectives
    longest = np.sort(np.argsort(-events.exposed_ns, kind="stable")[:_CITED])
    return (
        Finding(
            id=ID,
            scope="ProfilerStep" if found.has_steps else "whole",
            severity=_severity(found, stake),
            confidence="medium",
            time_at_stake_us=round(stake / 1e3, 3),
            summary=f"{time_us(found.exposed / 1e3)} {of} ({share(found.exposed, found.lasts)}) is "
            "communication that no compute hides, on average over "
            f"{plural(len(members), 'rank')}: {_parts(found)}",
            cause=_cause(found, members, arrivals, needs),
            fix=_fix(found),
            evidence=tuple(events.event[longest].tolist()),
            subject=", ".join(sorted(found.by_kind)),
            per_call=1.0,
        ),
    )


def _severity(found: _Exposed, stake: float) -> Severity:
    is_warning = stake >= _WARNING * found.lasts and found.idle <= _MOSTLY_IDLE
    return "warning" if is_warning else "note"


def _parts(found: _Exposed) -> str:
    parts = [
        f"{time_us(found.moving / 1e3)} moves data",
        f"{time_us(found.waiting / 1e3)} waits for other ranks",
    ]
    if found.bubble:
        parts.append(f"{time_us(found.bubble / 1e3)} waits for another stage of the pipeline")
    if found.unmatched >= _NOTE * found.exposed:
        parts.append(
            f"{time_us(found.unmatched / 1e3)} cannot be told, in collectives that could not be matched"
        )
    return ", ".join(parts)


def _cause(found: _Exposed, members: Sequence[Member], arrivals: Arrivals, needs: Needs) -> str:
    text = (
        "Until its last rank has come a collective waits; from then on it moves data. At stake is what moves "
        f"data, at most the {time_us(found.hideable / 1e3)} of compute that runs with no communication "
        "beside it."
    )
    return text if found.waiting < _MUCH * found.lasts else text + _who_waits(members, arrivals, needs)


def _who_waits(members: Sequence[Member], arrivals: Arrivals, needs: Needs) -> str:
    """Name the rank that waits most and whom it waits for; and whether it only runs ahead."""
    last = arrivals.member[arrivals.last_at][arrivals.call]
    waited = np.bincount(arrivals.member, arrivals.waited_ns, len(members))
    most = int(np.argmax(waited))
    mine = arrivals.member == most
    blamed = np.bincount(last[mine], arrivals.waited_ns[mine], len(members))
    other = int(np.argmax(blamed))
    if blamed[other] < _MOSTLY * waited[most]:
        return f" Rank {members[most].rank} waits most, for no rank in particular: they take turns."
    steps = sum(len(file.steps) for file in members[most].files)
    each = f"{time_us(waited[most] / 1e3 / max(steps, 1))}{' a step' if steps else ''}"
    one, two = members[most].rank, members[other].rank
    text = f" Rank {one} waits most, {each} overlapped or not, mostly for rank {two}"
    launching = _launching(members[other])
    if launching < _MOSTLY_IDLE:
        return f"{text}."
    text += f", whose GPU is idle between launches {percent(100 * launching)} of the time"
    own = [needs.host_of(at) for at in (most, other)]
    hosts = f" (they need {time_us(own[0] / 1e3)} and {time_us(own[1] / 1e3)} a step)" if all(own) else ""
    return (
        f"{text}: the host of rank {one} runs ahead of that of rank {two}{hosts}, so that its collectives "
        "wait with a GPU that would else be idle. That costs no more than the hosts differ by."
    )


def _launching(member: Member) -> float:
    """Return the part of the window in which a rank's GPU waits for ordinary launches."""
    parts = [part for file in member.files for part in file.breakdown]
    window = sum(part.window_ns for part in parts)
    return sum(part.idle_ns.get("launch", 0) for part in parts) / window if window else 0.0


def _fix(found: _Exposed) -> str:
    kind = max(found.by_kind, key=lambda one: (found.by_kind[one], one), default="")
    if found.bubble > max(found.moving, found.waiting):
        return (
            "More microbatches, or an interleaved schedule (torch.distributed.pipelining), fill the bubble."
        )
    if found.waiting > found.moving:
        return "Balance the ranks first: the table says who comes last and who waits. Then hide what is left."
    if kind in ("allgather", "reducescatter"):
        return "FSDP: prefetch (set_modules_to_forward_prefetch, set_modules_to_backward_prefetch)."
    if kind == "alltoall":
        return "Split the batch in two, and let the experts of one half compute while the other half is sent."
    if is_point_to_point(kind):
        return "More microbatches, or an interleaved schedule (torch.distributed.pipelining)."
    return (
        "DDP: smaller buckets (bucket_cap_mb), gradient_as_bucket_view=True, no_sync() while accumulating; "
        "tensor parallelism: asynchronous tensor parallelism, or the batch split in two."
    )
