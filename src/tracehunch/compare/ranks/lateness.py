"""By how much each rank came later to a collective than the ranks it shares it with, step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from tracehunch.compare.ranks.keys import distinct_rows
from tracehunch.compare.ranks.table import ends_together
from tracehunch.compare.ranks.waiting import steps_of
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from tracehunch.compare.ranks.peers import Peers
    from tracehunch.compare.ranks.table import Table
    from tracehunch.compare.ranks.waiting import Arrivals
    from tracehunch.trace.model import Float64, Int64


@dataclass(frozen=True, slots=True)
class Lateness:
    """The rows of collectives that all ranks of a group have to join, in which lateness counts.

    Left out are the first call of a group in a recording, in which connections are set up and the profilers
    of the ranks begin, and groups that mix stages of a pipeline. A *unit* is a step, or, where no steps were
    recorded, a call.
    """

    member: Int64
    row: Int64  # in the member's collectives
    unit: Int64
    late_ns: Int64  # after the median of the others; below 0: before it
    worst_ns: Int64  # the largest of the same call
    group: Int64  # of the table
    others_waited_ns: Float64  # of each call what its (lower) median rank waited, the last one left out
    others_exposed_ns: Float64
    steps: tuple[int | None, ...]  # of each unit its step; None: units are calls
    end_ns: Int64  # of each unit: when its last call ended
    recording: Int64  # of each unit
    called: frozenset[tuple[int, int]]  # (recording, step) in which any rank recorded a collective

    @property
    def units(self) -> int:
        """How many there are."""
        return len(self.steps)

    @classmethod
    def of(cls, arrivals: Arrivals, table: Table, peers: Peers) -> Self:
        """Choose the calls in which lateness counts, and measure it."""
        chosen = (
            np.flatnonzero(_judged(arrivals, table, peers)[arrivals.call]) if arrivals.calls else arrivals.row
        )
        late = _after_the_others(arrivals)[chosen]
        call = arrivals.call[chosen]
        worst = np.full(max(arrivals.calls, 1), np.iinfo(np.int64).min)
        np.maximum.at(worst, call, late)
        unit, steps, recording = _units(arrivals, table, call)
        end = np.zeros(len(steps), dtype=np.int64)
        np.maximum.at(end, unit, arrivals.end_ns[call])
        return cls(
            member=arrivals.member[chosen],
            row=table.row[arrivals.row[chosen]],
            unit=unit,
            late_ns=late,
            worst_ns=np.maximum(worst[call], 0),
            group=table.group[arrivals.row[chosen]],
            others_waited_ns=_of_the_others(arrivals, arrivals.waited_ns)[call],
            others_exposed_ns=_of_the_others(arrivals, arrivals.exposed_wait_ns)[call],
            steps=steps,
            end_ns=end,
            recording=recording,
            called=_called(table),
        )

    def lasts_ns(self) -> float | None:
        """Return the time from the end of the first call to that of the last; None with fewer than two."""
        lasts = float(self.end_ns.max() - self.end_ns.min()) if self.end_ns.size else 0.0
        return lasts or None

    def period_ns(self, only: Collection[tuple[int, int]] | None = None) -> float | None:
        """Return the mean time from the end of a step to that of the next; None with fewer than two.

        ``only``: of these steps, each as (recording, step). Of steps with no collective the next one tells.
        """
        numbers = [step or 0 for step in self.steps]
        keys = zip(self.recording.tolist(), numbers, strict=True)
        chosen = np.array([only is None or key in only for key in keys], dtype=bool)[1:]
        lengths = np.diff(self.end_ns) / np.maximum(np.diff(np.array(numbers, dtype=np.int64)), 1)
        lengths = lengths[chosen & (np.diff(self.recording) == 0) & (lengths > 0)]
        return float(lengths.mean()) if lengths.size else None

    def heard(self, units: Sequence[tuple[int, int]]) -> NDArray[np.bool_]:
        """Tell of each (recording, step), in order, whether lateness counts in it, or in the next with calls.

        Where gradients are accumulated, ranks meet every few steps: what one is late then is of all of them.
        """
        known = set(zip(self.recording.tolist(), (step or 0 for step in self.steps), strict=True))
        found, after = np.zeros(len(units), dtype=bool), (-1, False)
        for at in range(len(units) - 1, -1, -1):
            if units[at] in self.called:
                after = units[at][0], units[at] in known
            found[at] = after == (units[at][0], True)
        return found


def _called(table: Table) -> frozenset[tuple[int, int]]:
    recordings, steps = distinct_rows(table.recording, table.step)[0] if len(table) else ((), ())
    return frozenset(zip(map(int, recordings), map(int, steps), strict=True))


def _judged(arrivals: Arrivals, table: Table, peers: Peers) -> NDArray[np.bool_]:
    """Tell of each call whether lateness counts in it."""
    first = arrivals.row[arrivals.first[:-1]]
    together = np.array([*map(ends_together, table.kinds), False], dtype=bool)[table.kind[first]]
    group, recording = table.group[first], table.recording[first]
    order = np.lexsort((arrivals.end_ns, group, recording))
    begins = np.ones(order.size, dtype=bool)
    begins[1:] = (np.diff(group[order]) != 0) | (np.diff(recording[order]) != 0)
    is_first = np.zeros(order.size, dtype=bool)
    is_first[order[begins]] = True
    judged: NDArray[np.bool_] = together & ~peers.staged[group] & ~is_first
    known = steps_of(arrivals, table) != ABSENT
    return judged & known if known.any() else judged


def _after_the_others(arrivals: Arrivals) -> Int64:
    """Return each row's start after the (lower) median start of the other rows of its call."""
    if not arrivals.calls:
        return arrivals.start_ns
    order = np.lexsort((arrivals.start_ns, arrivals.call))
    start, call = arrivals.start_ns[order], arrivals.call[order]
    begin, size = arrivals.first[:-1][call], arrivals.sizes[call]
    place = np.arange(order.size) - begin
    middle = (size - 2) // 2  # of size - 1 others, counted from 0
    others = start[begin + np.where(middle < place, middle, middle + 1)]
    late = np.empty_like(start)
    late[order] = start - others
    return late


def _of_the_others(arrivals: Arrivals, values: Int64) -> Float64:
    """Return for each call the (lower) median over its rows without the last one, which waits for none."""
    if not arrivals.calls:
        return np.zeros(0)
    order = np.lexsort((values, np.arange(values.size) != arrivals.last_at[arrivals.call], arrivals.call))
    middle = arrivals.first[:-1] + 1 + np.maximum(arrivals.sizes - 2, 0) // 2
    found: Float64 = values[order][middle].astype(np.float64)
    return found


def _units(arrivals: Arrivals, table: Table, call: Int64) -> tuple[Int64, tuple[int | None, ...], Int64]:
    """Return the unit of each row, by time, and of each unit its step and its recording."""
    if not call.size:
        return call, (), call
    step = steps_of(arrivals, table)
    recording = table.recording[arrivals.row[arrivals.first[:-1]]]
    if (step[call] == ABSENT).all():
        calls, unit = np.unique(call, return_inverse=True)
        order = np.argsort(arrivals.end_ns[calls], kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return place[unit.reshape(-1)], (None,) * calls.size, recording[calls[order]]
    (recordings, steps), unit = distinct_rows(recording[call], step[call])
    return unit, tuple(steps.tolist()), recordings
