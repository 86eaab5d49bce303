"""What each rank needs for a step by itself, on the host and on its GPU, and how much more than its peers.

A rank that only waits needs nothing of that time: the host's own time is that of a step without what the GPU
held it up for, the GPU's is that in which it was busy without exposed communication (of a collective that
could not be matched nobody knows how much is waiting for a rank whose file is missing). So a rank that runs
ahead of another, and therefore waits in each collective, is told from one that has more to do.

Where no steps were recorded a unit is a whole recording: of the host then only that idle time of the GPU
counts that has a reason of its own (host code outside PyTorch, ops computed on the host ...).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Self

import numpy as np

from tracehunch.compare.ranks.keys import distinct_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.table import Table
    from tracehunch.compare.ranks.waiting import Arrivals
    from tracehunch.trace.model import Float64, Int64

Where = Literal["gpu", "host"]
NO_STEP: Final = -1
OWN_REASONS: Final = ("stall", "library", "copy", "allocation", "compile", "first-use")
"""Causes of idle time that are no ordinary launching and no waiting."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Nanoseconds by member and unit (a step of a recording); nan where a rank has not recorded it."""

    units: tuple[tuple[int, int], ...]  # (recording, step), in order; step NO_STEP where there are none
    host_ns: Float64
    gpu_ns: Float64  # without communication
    moved_ns: Float64  # exposed communication without the waiting for other ranks
    ahead: tuple[int, ...] = ()  # by member: of the numbers of its steps, as ``numbering`` has it

    @property
    def has_steps(self) -> bool:
        """Whether the units are steps."""
        return any(step != NO_STEP for _, step in self.units)

    def host_of(self, member: int) -> float:
        """Return what the host of a rank needs for its median step; 0 where no steps tell."""
        return self._usual(self.host_ns[member])

    def gpu_of(self, member: int) -> float:
        """Return what its GPU needs for that, without communication; 0 where no steps tell."""
        return self._usual(self.gpu_ns[member])

    def _usual(self, values: Float64) -> float:
        known = values[~np.isnan(values)]
        return float(np.median(known)) if known.size and self.has_steps else 0.0

    @classmethod
    def of(cls, members: Sequence[Member], arrivals: Arrivals, table: Table, ahead: Int64) -> Self:
        """Measure every step that any of the ranks recorded; ``ahead``: as ``numbering`` has it."""
        units = tuple(sorted({(recording, step.number - by)
                              for member, by in zip(members, ahead.tolist(), strict=True)
                              for file, recording in zip(member.files, member.recordings, strict=True)
                              for step in file.steps}))  # fmt: skip
        if not units:
            return cls(*_whole(members))
        at = {unit: number for number, unit in enumerate(units)}
        host, busy = (np.full((len(members), len(units)), np.nan) for _ in range(2))
        for number, member in enumerate(members):
            for file, recording in zip(member.files, member.recordings, strict=True):
                for step in file.steps:
                    unit = at[recording, step.number - int(ahead[number])]
                    host[number, unit] = step.end_ns - step.start_ns - (step.held_ns or 0)
                    if step.gpu_busy_ns is not None:
                        busy[number, unit] = step.gpu_busy_ns
        exposed = _by_unit(at, busy.shape, table, np.arange(len(table)), table.exposed_ns)
        moved = arrivals.exposed_ns - arrivals.exposed_wait_ns
        gpu = np.maximum(busy - exposed, 0)
        own = _by_unit(at, busy.shape, table, arrivals.row, moved)
        return cls(units, host, gpu, own, tuple(ahead.tolist()))

    def shared(self, peers: Sequence[int]) -> Self:
        """Leave out what fewer than two of the peers recorded: nothing can be compared there."""
        kept = np.flatnonzero((~np.isnan(self.host_ns[peers])).sum(axis=0) >= 2)  # ranks
        return type(self)(
            tuple(self.units[at] for at in kept.tolist()),
            self.host_ns[:, kept],
            self.gpu_ns[:, kept],
            self.moved_ns[:, kept],
            self.ahead,
        )

    def excess_ns(self, where: Where, peers: Sequence[int]) -> Float64:
        """Return by how much each of the peers needs more than the median of the other ones."""
        return over_the_others(self.gpu_ns[peers] if where == "gpu" else self.host_ns[peers])

    def own_ns(self) -> Float64:
        """Return what a step of each rank takes at least: its host or its GPU, whichever needs longer."""
        return np.fmax(self.host_ns, self.gpu_ns + self.moved_ns)


def _whole(members: Sequence[Member]) -> tuple[tuple[tuple[int, int], ...], Float64, Float64, Float64]:
    """Return the needs by recording; windows of different lengths are brought to that of the first rank."""
    recordings = sorted({recording for member in members for recording in member.recordings})
    host, gpu = (np.full((len(members), len(recordings)), np.nan) for _ in range(2))
    lasts: dict[int, int] = {}
    for number, member in enumerate(members):
        for file, recording in zip(member.files, member.recordings, strict=True):
            window = sum(part.window_ns for part in file.breakdown)
            if window:
                scale = lasts.setdefault(recording, window) / window
                at = recordings.index(recording)
                gpu[number, at] = scale * sum(part.compute_ns + part.copy_ns for part in file.breakdown)
                idle = (part.idle_ns.get(cause, 0) for part in file.breakdown for cause in OWN_REASONS)
                host[number, at] = scale * sum(idle)
    return tuple((recording, NO_STEP) for recording in recordings), host, gpu, np.zeros_like(gpu)


def _by_unit(
    at: dict[tuple[int, int], int], shape: tuple[int, ...], table: Table, row: Int64, values: Int64
) -> Float64:
    """Add up values of rows of the table by member and by the step in which each was launched."""
    total = np.zeros(shape)
    if not row.size or not at:
        return total
    (recordings, steps), where = distinct_rows(table.recording[row], table.step[row])
    keys = zip(recordings.tolist(), steps.tolist(), strict=True)
    unit = np.array([at.get(key, -1) for key in keys])[where]
    known = unit >= 0
    np.add.at(total, (table.member[row][known], unit[known]), values[known])
    return total


def over_the_others(values: Float64) -> Float64:
    """Subtract, from each row of a column, the (lower) median of the other rows; nan where there is none."""
    found = np.full(values.shape, np.nan)
    for column in range(values.shape[1]):
        known = np.flatnonzero(~np.isnan(values[:, column]))
        if known.size >= 2:  # ranks
            found[known, column] = values[known, column] - _others_median(values[known, column])
    return found


def _others_median(values: NDArray[np.float64]) -> NDArray[np.float64]:
    order = np.argsort(values, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    middle = (values.size - 2) // 2
    found: NDArray[np.float64] = values[order][np.where(middle < place, middle, middle + 1)]
    return found
