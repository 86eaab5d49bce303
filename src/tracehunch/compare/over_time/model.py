"""A run in cycles: what each file gives (small), and what changed from call to call, and when.

A *cycle* is one file of a run: the profiler's schedule writes one each time it comes round. Stamps are
absolute (the file's base time added), in whole nanoseconds; where a file has no absolute time,
``Cycle.is_absolute`` is False. What a trace cannot tell is NaN or None, never zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.facts.model import Value
    from tracehunch.trace.model import Environment, Float64, Int64, Notice
    from tracehunch.tree import ScopeKind
    from tracehunch.verdict import Finding, Severity

COMPUTE: Final = "gpu_time_without_collectives"
"""Key of the GPU time of a call less that of its collectives."""

Kind = Literal[
    "constant", "step", "trend", "turns", "warm-up", "one-off", "varies", "beside-collectives", "too-few"
]  # fmt: skip
"""What became of a fact over time.

``step`` from one level to another, ``trend`` steadily up or down, ``turns`` a level of its own in every k-th
call, ``warm-up`` higher in the first cycle only, ``one-off`` in a few calls only,
``varies`` without an order in time,
``beside-collectives`` only in kernels that share the GPU with collectives, in calls that take no longer,
``too-few`` calls to tell.
"""


@dataclass(frozen=True, slots=True)
class Uses:
    """What calls launched (or, without a GPU, which leaf ops they ran): (call, name) pairs, by call."""

    names: tuple[str, ...]
    call: Int64
    name: Int64  # -> names
    count: Int64
    time_ns: Int64
    alone_us: Float64  # of each occurrence, by use and start; nan beside a collective; or empty


@dataclass(frozen=True, slots=True)
class ScopeCalls:
    """The calls of one scope in one cycle, by start; values as the facts have them (times in us)."""

    name: str
    kind: ScopeKind
    start_ns: Int64
    end_ns: Int64
    step: Int64  # number of the ProfilerStep it is in, or is; ABSENT
    values: Mapping[str, Float64]  # key -> per call; nan: not known
    words: Mapping[str, tuple[Value | None, ...]]  # key -> per call
    uses: Uses

    def __len__(self) -> int:
        return len(self.start_ns)


@dataclass(frozen=True, slots=True)
class Cycle:
    """What one file gives; a few hundred kilobytes at most."""

    source: str
    label: str  # printable
    rank: int | None
    world_size: int | None
    process: str  # pid of the process with most host rows; "" where there is none
    host: str  # from the file's name, as the profiler's own handlers write it; else ""
    torch: str | None
    devices: tuple[str, ...]
    environment: Environment
    start_ns: int
    end_ns: int
    is_absolute: bool
    scopes: Mapping[str, ScopeCalls]
    findings: tuple[Finding, ...]
    notices: tuple[Notice, ...]
    recorded: tuple[bool, bool, bool]  # shapes, stacks, memory: what recording costs differs with them
    fingerprint: str  # hash over what was recorded: the same file twice has the same
    on_gpu: bool
    file_bytes: int | None = None
    backend: str | None = None  # of the job's process group: "nccl", "gloo" ...
    group: tuple[str, str, int | None] | None = None  # the largest process group: name, description, size


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that gave nothing, and why, in the words of its error."""

    source: str
    label: str
    why: str


@dataclass(frozen=True, slots=True)
class Place:
    """One call in time: which cycle (from 0), which of the scope's calls in the run (from 1), which step."""

    cycle: int
    call: int
    step: int | None
    start_ns: int


@dataclass(frozen=True, slots=True)
class Level:
    """A stretch of calls of one value: for a time its median."""

    first: Place
    last: Place
    calls: int
    value: Value


@dataclass(frozen=True, slots=True)
class Drift:
    """What became of one fact of one scope.

    ``levels`` in order of time: two or more of a ``step``, first and last fifth of a ``trend``, usual and
    other of ``turns`` and ``one-off``. ``p`` is the chance of the like without any drift, before correction
    for the number of facts that were tried; None where the values are exact and every change is one.
    """

    scope: str
    key: str
    unit: str
    kind: Kind
    levels: tuple[Level, ...] = ()
    at: tuple[Place, ...] = ()  # of a step: where each later level begins; of turns, one-offs: those calls
    every: int | None = None  # of turns: the k of "every k-th call"
    slope: float | None = None  # of a trend: per call (Theil-Sen)
    p: float | None = None
    share: float | None = None  # later over earlier level, less 1
    series: tuple[float | None, ...] = ()  # one value a bucket of the run: the median of its calls
    series_at: tuple[int, ...] = ()  # step (or call, from 1) that each bucket begins with; () if constant
    series_by: Literal["step", "call"] = "call"  # step where the numbers of steps rise


@dataclass(frozen=True, slots=True)
class Cause:
    """Why, as far as the cycles show it. ``id`` is stable; one of ``CAUSES``."""

    id: str
    text: str
    confidence: Literal["high", "medium", "low"]


@dataclass(frozen=True, slots=True)
class Shift:
    """All that changed at one moment in one scope, or all that grows in it: one thing, told once."""

    scope: str
    kind: Kind
    drifts: tuple[Drift, ...]  # the one that says most first
    place: Place | None  # where it begins; None of a trend and of turns
    cost_us: float | None  # more time a call than before; None where no time changed
    severity: Severity
    also: tuple[tuple[str, float | None], ...] = ()  # scopes around it that show the same, and their cost_us
    causes: tuple[Cause, ...] = ()
    came: tuple[Finding, ...] = ()  # findings in the cycles after, and in none before
    went: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """The cycles of one rank in order of time, and what changed."""

    rank: int | None
    label: str  # how reports name it: "rank 3", or "" where there is but one
    cycles: tuple[Cycle, ...]
    shifts: tuple[Shift, ...]  # by severity and cost
    drifts: tuple[Drift, ...]  # of all facts, constant ones included
    calls: Mapping[str, int]  # scope -> calls
    tried: int  # facts held to the tests, over all scopes
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True, slots=True)
class OverTime:
    """What ``look --over-time`` reports."""

    runs: tuple[Run, ...]
    unread: tuple[Unread, ...]
    notices: tuple[Notice, ...]
    false_alarms: float  # chance of one or more in the whole report, at most
    left_out: tuple[str, ...] = field(default=())  # files of other jobs, duplicates: a sentence each
