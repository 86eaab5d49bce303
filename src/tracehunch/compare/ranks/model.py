"""Many ranks: what one rank's trace gives (small, a worker sends it), and what all of them show together.

A *rank* is one process of a distributed job; it may have several files, one a cycle of the schedule.
Times are whole nanoseconds. Stamps are absolute (the file's base time added), by the clock of the rank's own
host until ``Clocks`` says how to set them right. What a trace cannot tell is None or ABSENT, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from tracehunch.facts.model import Value
    from tracehunch.trace.model import Int32, Int64, Notice
    from tracehunch.verdict import Finding

RankFrom = Literal["distributedInfo", "file name", "order"]
"""How the rank of a file is known, the surest first."""


@dataclass(frozen=True, slots=True)
class Group:
    """A process group as the collectives name it; ``ranks`` is empty where the file does not list them."""

    name: str
    description: str = ""
    ranks: tuple[int, ...] = ()
    size: int | None = None


@dataclass(frozen=True, slots=True)
class Collectives:
    """Collective kernels of one rank in columns, by launch; ABSENT where the file does not say.

    ``number`` counts the calls of a group on this rank from the file's first: ranks whose recordings began
    at another call are shifted by a constant, which matching finds. ``sequence`` is the number that the
    process group itself gave the call, where it was recorded.
    """

    kind: Int32  # -> kinds: "allreduce", "_allgather_base", "send" ...
    group: Int32  # -> groups; ABSENT
    dtype: Int32  # -> dtypes; ABSENT
    op: Int32  # -> ops: the innermost op or annotation that called it; ABSENT
    number: Int64
    sequence: Int64
    in_bytes: Int64
    out_bytes: Int64
    launch_ns: Int64
    start_ns: Int64
    end_ns: Int64
    exposed_ns: Int64  # of its duration, without a compute kernel on the device
    device: Int32
    step: Int32  # number of the ProfilerStep, as in its name, in which it was launched; ABSENT
    event: Int64  # position in traceEvents

    kinds: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    dtypes: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    peer: Int32 | None = None  # of a send or receive the other side's rank; ABSENT, or None: never recorded

    def __len__(self) -> int:
        return len(self.kind)


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where the time of one device went. ``compute + exposed communication + copies + idle`` is the window.

    An instant is compute's where a compute kernel runs; else communication's where a collective does; else
    the copies' where a memcpy or memset does; else idle, by cause (the causes of ``checks._idle``).
    """

    device: int
    window_ns: int
    compute_ns: int
    exposed_communication_ns: int
    copy_ns: int
    idle_ns: Mapping[str, int]
    communication_ns: int  # in which any collective runs
    overlapped_ns: int  # of it, beside compute

    @property
    def whole_idle_ns(self) -> int:
        """All idle time."""
        return sum(self.idle_ns.values())


@dataclass(frozen=True, slots=True)
class Step:
    """One ``ProfilerStep#N`` on the host, absolute; ``gpu_busy_ns`` of the activities it launched."""

    number: int
    start_ns: int
    end_ns: int
    gpu_busy_ns: int | None = None
    held_ns: int | None = None  # of the host's time: held up by the GPU (syncs, a full queue)


@dataclass(frozen=True, slots=True)
class OpSteps:
    """Time of the ops that take most of it, by op and step: ``us[op, step]``, steps as in RankSummary."""

    ops: tuple[str, ...] = ()
    us: NDArray[np.float32] | None = field(default=None, compare=False)  # None: no steps, or nothing recorded


@dataclass(frozen=True, slots=True)
class RankSummary:
    """What one file of one rank gives; a few hundred kilobytes at most, whatever the size of the file."""

    source: str  # path or URL, as it was found
    label: str  # short, printable
    file_bytes: int | None
    rank: int | None  # None: neither the file nor its name says; compare/ranks/jobs.py gives it one by order
    rank_from: RankFrom
    world_size: int | None
    backend: str | None  # "nccl", "gloo" ...
    groups: tuple[Group, ...]  # as the header configures them
    torch: str | None
    devices: tuple[str, ...]  # names of the GPUs that were used
    trace_id: str | None
    host: str | None  # where the file or its name says it
    start_ns: int  # of the recorded window, absolute
    end_ns: int
    breakdown: tuple[Breakdown, ...]  # by device that was used; empty: no GPU activity was recorded
    collectives: Collectives
    steps: tuple[Step, ...]
    facts: Mapping[str, Mapping[str, Value]]  # scope -> key -> value per call, as in the JSON of look
    gpu_time_us_by_op: Mapping[str, float]  # of the whole file, by the innermost op that launched it
    findings: tuple[Finding, ...]  # of this file alone, as look has them
    notices: tuple[Notice, ...]  # damage and doubt about the file
    events: int
    fingerprint: str  # hash over what was recorded: the same file twice has the same
    seconds: float = field(default=0.0, compare=False)  # it took; never printed where outputs are compared
    peak_bytes: int | None = field(default=None, compare=False)
    host_time_us_by_op: Mapping[str, float] = field(
        default_factory=dict
    )  # of the whole file, without children
    gpu_steps: OpSteps = field(default_factory=OpSteps, compare=False)  # as gpu_time_us_by_op, by step
    host_steps: OpSteps = field(default_factory=OpSteps, compare=False)  # as host_time_us_by_op, by step


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that gave nothing, and why, in the words of its error."""

    source: str
    label: str
    what: str
    why: str
    file_bytes: int | None = None


Examined = RankSummary | Unread


@dataclass(frozen=True, slots=True)
class Clock:
    """How far a rank's clock is ahead of the reference rank's; subtract it. From the ends of collectives.

    Two hosts' clocks may also run at different rates: at ``t`` the offset is
    ``offset_ns + drift_ppm * (t - at_ns) / 1e6``.
    """

    rank: int
    offset_ns: int
    error_ns: int  # spread of what the collectives say, half of the middle 95 %
    collectives: int  # that it rests on; 0: none, the offset is taken to be 0 and cannot be told
    drift_ppm: float = 0.0  # 0: none that can be told from the spread
    at_ns: int = 0  # by the rank's own clock: the moment of offset_ns


@dataclass(frozen=True, slots=True)
class Matched:
    """One collective on all ranks that recorded it. Stamps are on the reference rank's clock."""

    group: str
    kind: str
    number: int  # in the group, by the rank that recorded the most
    dtype: str
    bytes: int | None  # the message, as bus bandwidth counts it
    group_size: int
    step: int | None
    rows: Mapping[int, int]  # rank -> position in its Collectives (those of its files, one after the other)
    first_start_ns: int
    last_start_ns: int  # the arrival of the last rank
    end_ns: int
    last_rank: int
    exposed_ns: Mapping[int, int]  # rank -> exposed time
    waited_ns: Mapping[int, int]  # rank -> how long it was there before the last one
    group_kind: str = ""  # as ``Bandwidth.group``

    @property
    def skew_ns(self) -> int:
        """From the first arrival to the last."""
        return self.last_start_ns - self.first_start_ns


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """Bus bandwidth of collectives of one kind and size class, timed from the last arrival to the end.

    ``group`` is a printable label of the process groups that it counts, such as "tp", "default_pg" or, where
    they have no description, "ranks 0-7" and "64 groups of stride 8"; ``groups`` is their number. Groups of
    one size and one stride (all the tensor-parallel ones) are one line, tensor- and data-parallel ones two.

    As nccl-tests define it: bytes / time, times 2(n-1)/n for all-reduce, (n-1)/n for all-gather,
    reduce-scatter and all-to-all, 1 for the rest.
    """

    kind: str
    group_size: int
    least_bytes: int
    most_bytes: int
    count: int
    median_us: float
    bus_bytes_per_s: float | None
    group: str = ""  # "": the files do not tell
    groups: int = 1


@dataclass(frozen=True, slots=True)
class Odd:
    """A fact in which one rank differs from the median rank.

    Of two ranks neither is the odd one: there ``ranks`` is 1 and ``has_majority`` False; ``rank`` and
    ``seen`` are the second one's, ``median`` is what the other one has.
    """

    rank: int
    scope: str
    key: str
    seen: Value
    median: Value
    ranks: int  # that have the median's value

    @property
    def has_majority(self) -> bool:
        """Whether several ranks agree against this one."""
        return self.ranks > 1


@dataclass(frozen=True, slots=True)
class RankRow:
    """One line of the report: a rank, all its cycles and devices together."""

    rank: int
    labels: tuple[str, ...]
    rank_from: RankFrom
    steps: int
    step_us: float | None  # median duration of a step
    window_ns: int
    compute_ns: int
    exposed_communication_ns: int
    copy_ns: int
    idle_ns: Mapping[str, int]
    communication_ns: int
    overlapped_ns: int
    waited_ns: int | None  # in collectives, for others; None: nothing could be matched
    made_wait_ns: int | None  # what the ranks of its groups waited for it, all together
    sources: tuple[str, ...] = ()  # path or URL of each of ``labels``: what a command takes; in no JSON
    is_cut: bool = False  # its file breaks off: what it lacks of GPU time says nothing
    job_step_us: float | None = None  # recorded window (a device's) over steps, which ranks of a job share


@dataclass(frozen=True, slots=True)
class Ranks:
    """One job, all ranks together: what ``tracehunch ranks`` reports."""

    world_size: int | None
    missing: tuple[int, ...]
    rows: tuple[RankRow, ...]  # by rank
    clocks: tuple[Clock, ...]
    matched: tuple[Matched, ...]
    unmatched: int  # collectives that only some of their group's ranks recorded
    bandwidth: tuple[Bandwidth, ...]
    odd: tuple[Odd, ...]
    findings: tuple[Finding, ...]  # of all together; of single ranks what others lack; what most ranks have
    notices: tuple[Notice, ...]  # missing, duplicate, damaged, mixed ...
    unread: tuple[Unread, ...]
    torch: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    other_jobs: tuple[str, ...] = ()
    """Jobs in the same place that were left out: a phrase each."""
