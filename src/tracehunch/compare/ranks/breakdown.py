"""Where the time of each device of one rank went: compute, communication, copies, and idle by cause.

Each instant of a device's window belongs to exactly one part, by what runs then: compute goes before
communication, communication before copies, and what is left is idle, by the causes of ``checks._idle``. So
the parts add up to the window, to the nanosecond. The window is the time in which the device could have had
work: the recorded time, without stretches in which the profiler was off, without the wait in which it flushes
its buffers at the end, and, where the device's first activity was queued before the recording began, from
there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._idle_gaps import clock_shift_ns, windows_of
from tracehunch.checks._spans import Spans
from tracehunch.checks.exposed_communication import collectives, computing
from tracehunch.compare.ranks.model import Breakdown
from tracehunch.trace.model import UNKNOWN_NS, Cat, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.facts.model import Facts
    from tracehunch.trace.model import Int64

CAUSES: Final = tuple(cause.name.lower().replace("_", "-") for cause in IdleCause)
"""Causes of idle time, as keys of ``Breakdown.idle_ns``, in the order of ``IdleCause``."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The busy time of a device, each instant once, and the communication of which some is beside compute."""

    compute_ns: int
    exposed_communication_ns: int
    copy_ns: int
    communication_ns: int


def breakdowns(facts: Facts) -> tuple[Breakdown, ...]:
    """Break down the window of every device that ran something; empty where no GPU activity was recorded."""
    return tuple(_of_device(facts, device, window) for device, window in windows_of(facts.tree).items())


def _of_device(facts: Facts, device: int, window: tuple[int, int]) -> Breakdown:
    tree = facts.tree
    shift = clock_shift_ns(tree)
    off = spans_of(*np.array(tree.window.gaps, dtype=np.int64).reshape(-1, 2).T)
    copying = tree.trace.rows(Cat.MEMCPY, Cat.MEMSET)
    rows = (computing(facts), collectives(facts), copying)
    parts = parts_of(*(running(tree.trace, some, device, shift).outside(off) for some in rows))
    return Breakdown(
        device=device,
        window_ns=length_ns(spans_of(*(np.array([moment]) for moment in window)).outside(off)),
        compute_ns=parts.compute_ns,
        exposed_communication_ns=parts.exposed_communication_ns,
        copy_ns=parts.copy_ns,
        idle_ns=_idle_ns(facts, device),
        communication_ns=parts.communication_ns,
        overlapped_ns=parts.communication_ns - parts.exposed_communication_ns,
    )


def parts_of(compute: Spans, communication: Spans, copies: Spans) -> Parts:
    """Share the busy time out: to compute first, then to communication, then to copies."""
    exposed = communication.outside(compute)
    alone = copies.outside(compute).outside(communication)
    return Parts(*map(length_ns, (compute, exposed, alone, communication)))


def running(trace: Trace, rows: Int64, device: int, shift_ns: int = 0) -> Spans:
    """When at least one of the GPU rows runs on a device; the shift turns its clock into the host's."""
    of_row = trace.gpu.device[np.searchsorted(trace.gpu.row, rows)]
    mine = rows[(of_row == device) & (trace.start_ns[rows] != UNKNOWN_NS)]
    return spans_of(trace.start_ns[mine] + shift_ns, trace.end_ns()[mine] + shift_ns)


def spans_of(start_ns: Int64, end_ns: Int64) -> Spans:
    """Join stretches of time that overlap."""
    return Spans.of(start_ns, end_ns, np.zeros(start_ns.size, dtype=np.int64))


def length_ns(spans: Spans) -> int:
    """Return how long they last together."""
    return int((spans.end_ns - spans.start_ns).sum())


def _idle_ns(facts: Facts, device: int) -> Mapping[str, int]:
    """Idle time by cause; causes that took none are left out."""
    idle = idle_of(facts)
    mine = idle.device == device
    total = np.zeros(len(CAUSES), dtype=np.int64)
    np.add.at(total, idle.cause[mine], (idle.end_ns - idle.start_ns)[mine])
    return {CAUSES[cause]: int(total[cause]) for cause in np.flatnonzero(total).tolist()}
