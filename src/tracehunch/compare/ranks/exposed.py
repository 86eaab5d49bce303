"""exposed-communication, over all ranks: how much of it moves data, and how much is waiting for other ranks.

Exposed is what no compute kernel on the same device runs beside. Of a matched collective that is exposed, the
part until its last rank arrived is waiting, in proportion where compute overlaps some of it; the rest moves
data. Where a rank of its group has not recorded it, the last may be that one: what is not waiting for another
one then cannot be told. Means over the ranks, so that the parts add up. At stake is what moves data, at most
the compute that runs with no communication beside it, for no more can hide it. What is waited is the
straggler's to answer.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tracehunch.compare.ranks.damage import comparable
from tracehunch.compare.ranks.table import is_point_to_point
from tracehunch.trace.model import ABSENT
from tracehunch.units import percent, plural, share, time_us
from tracehunch.verdict import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from tracehunch.compare.ranks.hosts import Hosts
    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.lateness import Lateness
    from tracehunch.compare.ranks.model import RankSummary
    from tracehunch.compare.ranks.table import Table
    from tracehunch.compare.ranks.waiting import Arrivals

    Bools: TypeAlias = np.ndarray[tuple[int], np.dtype[np.bool_]]

ID: Final = "exposed-communication"
_WARNING: Final = 0.1
_NOTE: Final = 0.01
_MOSTLY_IDLE: Final = 0.5
_MOSTLY: Final = 0.7
_MUCH: Final = 0.05
_CITED: Final = 20
_RECORD_ALL: Final = (
    "Record all ranks over the same steps: a rank that is missing may be the one that all wait for."
)
_RECORD_GROUPS: Final = (
    "Record with a recent PyTorch: it writes beside each collective to which process group it belongs."
)
_NONE: Final = np.zeros(0, dtype=bool)


@dataclass(frozen=True, slots=True)
class _Exposed:
    """Means over the ranks whose files are whole, of a step (of the recording without steps), in ns."""

    exposed: float
    waiting: float  # for other ranks, in collectives
    bubble: float  # the same in sends and receives: between stages of a pipeline
    unmatched: float  # of which nobody can say
    hideable: float  # compute with no communication beside it
    idle: float  # of the window, but for what the device needs
    lasts: float  # a step
    by_kind: Mapping[str, float]  # what moves data
    has_steps: bool
    has_groups: bool  # whether any file tells the process group of a collective
    ranks: int

    @property
    def much_us(self) -> float:
        """By how much stages of a pipeline have to differ to be worth a word."""
        return _MUCH * self.lasts / 1e3

    @property
    def moving(self) -> float:
        return max(self.exposed - self.waiting - self.bubble - self.unmatched, 0.0)

    @classmethod
    def of(
        cls, members: Sequence[Member], arrivals: Arrivals, table: Table, lateness: Lateness
    ) -> Self | None:
        chosen = comparable(members)
        files = [file for at in chosen for file in members[at].files]
        parts = [part for file in files for part in file.breakdown]
        steps = sum(len(file.steps) for file in files)
        units = steps or len(chosen)
        if not parts:
            return None
        sends = np.array([*map(is_point_to_point, table.kinds), False], dtype=bool)[table.kind[arrivals.row]]
        counted = np.isin(arrivals.member, chosen)
        waits = np.where(counted, arrivals.exposed_wait_ns, 0)
        window = sum(part.window_ns for part in parts)
        period = lateness.period_ns() if steps else None
        whole = _all_came(arrivals, table)
        left = table.exposed_ns[np.isin(table.member, chosen)].sum() - arrivals.exposed_ns[counted].sum()
        left += (arrivals.exposed_ns - arrivals.exposed_wait_ns)[counted & ~whole].sum()
        return cls(
            exposed=sum(part.exposed_communication_ns for part in parts) / units,
            waiting=float(waits[~sends].sum()) / units,
            bubble=float(waits[sends].sum()) / units,
            unmatched=float(left) / units,
            hideable=sum(max(part.compute_ns - part.overlapped_ns, 0) for part in parts) / units,
            idle=sum(part.whole_idle_ns - part.idle_ns.get("device", 0) for part in parts) / max(window, 1),
            lasts=period or _step_ns(files) or window / len(chosen),
            by_kind=_by_kind(arrivals, table, whole),
            has_steps=steps > 0,
            has_groups=bool((table.group != ABSENT).any()),
            ranks=len(chosen),
        )


def _step_ns(files: Sequence[RankSummary]) -> float | None:
    lengths = [step.end_ns - step.start_ns for file in files for step in file.steps]
    return float(np.median(lengths)) if lengths else None


def _all_came(arrivals: Arrivals, table: Table) -> Bools:
    """Tell of each row whether all ranks of its group recorded the call; a size that is not known is none."""
    size = np.array([*(one.size or 0 for one in table.groups), 0], dtype=np.int64)
    return (size[table.group[arrivals.row]] <= arrivals.sizes[arrivals.call]) if arrivals.calls else _NONE


def _by_kind(arrivals: Arrivals, table: Table, whole: Bools) -> Mapping[str, float]:
    total: dict[str, float] = defaultdict(float)
    moving = np.where(whole, arrivals.exposed_ns - arrivals.exposed_wait_ns, 0)
    kind = table.kind[arrivals.row]
    for code in np.unique(kind).tolist():
        total[table.kinds[code]] += float(moving[kind == code].sum())
    return total


def exposed(
    members: Sequence[Member], arrivals: Arrivals, table: Table, lateness: Lateness, hosts: Hosts
) -> tuple[Finding, ...]:
    """Return the finding, if anything material is exposed on a job of several ranks."""
    found = _Exposed.of(members, arrivals, table, lateness) if len(members) > 1 else None  # ranks
    if found is None or found.exposed < _NOTE * found.lasts:
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
            f"communication that no compute hides, {_whose(found)}: {_parts(found)}",
            cause=_cause(found, members, arrivals, hosts),
            fix=_fix(found, hosts),
            evidence=tuple(events.event[longest].tolist()),
            subject=", ".join(sorted(found.by_kind)),
            per_call=1.0,
        ),
    )


def _whose(found: _Exposed) -> str:
    if found.ranks == 1:
        return "on the one rank whose file is whole"
    return f"on average over {plural(found.ranks, 'rank')}"


def _severity(found: _Exposed, stake: float) -> Severity:
    is_warning = stake >= _WARNING * found.lasts and found.idle <= _MOSTLY_IDLE
    return "warning" if is_warning else "note"


def _parts(found: _Exposed) -> str:
    parts = [f"{time_us(found.moving / 1e3)} moves data"] if found.moving >= 1 or not found.unmatched else []
    if found.waiting or parts:
        parts.append(f"{time_us(found.waiting / 1e3)} waits for other ranks")
    if found.bubble:
        parts.append(f"{time_us(found.bubble / 1e3)} waits for another stage of the pipeline")
    if found.unmatched >= _NOTE * found.exposed:
        parts.append(
            f"{time_us(found.unmatched / 1e3)} cannot be told, in collectives that were not found on all of "
            "their ranks"
        )
    return ", ".join(parts)


def _cause(found: _Exposed, members: Sequence[Member], arrivals: Arrivals, hosts: Hosts) -> str:
    text = (
        "Until its last rank has come a collective waits; from then on it moves data. At stake is what moves "
        f"data, at most the {time_us(found.hideable / 1e3)} of compute that runs with no communication "
        "beside it."
    )
    if found.bubble >= _MUCH * found.lasts:
        text += hosts.slowest(found.much_us)
    return text if found.waiting < _MUCH * found.lasts else text + _who_waits(members, arrivals, hosts)


def _who_waits(members: Sequence[Member], arrivals: Arrivals, hosts: Hosts) -> str:
    """Name the rank that waits most and whom it waits for; and why, where it is their hosts."""
    last = arrivals.member[arrivals.last_at][arrivals.call]
    waited = np.bincount(arrivals.member, arrivals.waited_ns, len(members))
    most = int(np.argmax(waited))
    mine = arrivals.member == most
    blamed = np.bincount(last[mine], arrivals.waited_ns[mine], len(members))
    other = int(np.argmax(blamed))
    if blamed[other] < _MOSTLY * waited[most]:
        turns = "" if hosts.named else ", for no rank in particular: they take turns"
        return f" Rank {members[most].rank} waits most{turns}."
    steps = sum(len(file.steps) for file in members[most].files)
    each = f"{time_us(waited[most] / 1e3 / max(steps, 1))}{' a step' if steps else ''}"
    one, two = members[most].rank, members[other].rank
    return f" Rank {one} waits most, {each} overlapped or not, mostly for rank {two}.{hosts.why(most, other)}"


def _fix(found: _Exposed, hosts: Hosts) -> str:
    if found.bubble > max(found.moving, found.waiting):
        return _fix_of_bubble(hosts, found.much_us)
    if found.unmatched > max(found.moving, found.waiting):
        return _RECORD_ALL if found.has_groups else _RECORD_GROUPS
    if found.waiting > found.moving:
        return "Balance the ranks first: the table says who comes last and who waits. Then hide what is left."
    return _fix_of(max(found.by_kind, key=lambda one: (found.by_kind[one], one), default=""))


def _fix_of(kind: str) -> str:
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


def _fix_of_bubble(hosts: Hosts, much_us: float) -> str:
    bound = hosts.bound()
    if bound is None and hosts.slowest(much_us):
        return "Give all stages as much to do: move layers off the slowest one. Then more microbatches."
    if bound is None:
        return (
            "More microbatches, or an interleaved schedule (torch.distributed.pipelining), fill the bubble."
        )
    rank, part = bound
    return (
        f"The hosts are the limit: the GPU of rank {rank} waits for launches {percent(100 * part)} of the "
        "time, and more microbatches are more launches. First give the GPU more at once: larger "
        "microbatches, torch.compile, CUDA graphs."
    )
