"""The critical path of a step: which chain of work bounds it, and what would happen if parts of it were free.

Times are whole nanoseconds, by the file's own clock. Every nanosecond of the path is one kind's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Kind(StrEnum):
    """What a stretch of the path is, in the order in which equal shares are listed."""

    KERNEL = "kernel"
    COMMUNICATION = "communication"
    COPY = "copy"
    MEMSET = "memset"
    DEVICE = "device gap"  # between activities that were queued in time
    LATENCY = "launch latency"  # from the end of a launch call to the start of its work
    LAUNCH = "launch call"
    OP = "op"  # host time of ops, without the calls inside them
    CALL = "runtime call"  # events, queries, allocations ...
    WAIT = "wait call"  # what a wait costs beyond the work that it waits for
    OUTSIDE = "outside ops"  # Python, and C++ that records nothing
    LOADING = "data loading"
    PROFILER = "profiler"
    UNKNOWN = "cannot tell"  # nothing in the trace says what was waited for


@dataclass(frozen=True, slots=True)
class Contributor:
    """All stretches of one kind and name. ``events``: positions in traceEvents, the longest first."""

    kind: Kind
    name: str
    detail: str
    time_ns: int
    stretches: int
    events: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the step would take if something were free, by the same dependencies; at best.

    ``after_ns`` is None where the trace cannot tell: ``why`` says the reason. ``then`` is the kind that the
    path mostly consists of in that case.
    """

    id: str
    title: str
    after_ns: int | None
    then: Kind | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The path of one call of a scope, from ``start_ns`` to ``end_ns``; the kinds sum to its length."""

    scope: str
    name: str  # of the call, such as ProfilerStep#3
    chosen: Literal["median", "named", "only", "whole"]
    calls: int
    host_ns: int  # from begin to end of the call's own row
    start_ns: int
    end_ns: int
    before_ns: int  # from the call's begin until the path starts: the GPU still had earlier work
    kinds: tuple[tuple[Kind, int], ...]  # longest first
    contributors: tuple[Contributor, ...]  # longest first
    what_ifs: tuple[WhatIf, ...]  # largest gain first, then those that cannot be told
    notes: tuple[str, ...]
    residual_ns: int  # simulated with nothing changed, less recorded
    event: int | None  # of the call's own row

    @property
    def length_ns(self) -> int:
        """How long the step takes: the sum of the kinds."""
        return self.end_ns - self.start_ns
