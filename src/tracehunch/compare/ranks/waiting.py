"""Who was there when: arrivals at each matched collective, on one clock, and who waited for whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from tracehunch.compare.ranks.by_rank import ByRank
from tracehunch.compare.ranks.clocks import corrected
from tracehunch.compare.ranks.group_kinds import group_kinds
from tracehunch.compare.ranks.model import Matched
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.matching import Matches
    from tracehunch.compare.ranks.model import Clock
    from tracehunch.compare.ranks.table import Table
    from tracehunch.trace.model import Int64


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The matched rows by call and member, and per call what follows from them. Stamps on one clock.

    A kernel starts when its rank's stream has reached it and ends when all have joined and the data has
    moved: until the last rank has started, the others wait. Of time that a kernel ran beside compute nobody
    can say which part of it was waiting: exposed time is shared out in proportion.
    """

    row: Int64  # of the table
    member: Int64
    call: Int64
    start_ns: Int64
    lasted_ns: Int64
    waited_ns: Int64
    exposed_ns: Int64
    exposed_wait_ns: Int64
    first: Int64  # per call: its first position in the columns above; one more at the end
    first_start_ns: Int64
    last_start_ns: Int64
    end_ns: Int64
    last_at: Int64  # position of the row that came last

    @property
    def calls(self) -> int:
        """How many were matched."""
        return self.first.size - 1

    @property
    def sizes(self) -> Int64:
        """How many ranks recorded each call."""
        return np.diff(self.first)

    @classmethod
    def of(cls, table: Table, matches: Matches, clocks: Sequence[Clock]) -> Self:
        """Bring the matched rows on one clock, and see who came last."""
        rows = np.flatnonzero(matches.call != ABSENT)
        rows = rows[np.lexsort((table.member[rows], matches.call[rows]))]
        call, member = matches.call[rows], table.member[rows]
        start = corrected(table.start_ns[rows], member, clocks)
        end = corrected(table.end_ns[rows], member, clocks)
        begins = np.flatnonzero(np.r_[True, np.diff(call) != 0]) if rows.size else rows
        bounds = np.r_[begins, rows.size]
        lasted, exposed = end - start, table.exposed_ns[rows]
        if not rows.size:
            return cls(
                rows, member, call, start, lasted, lasted, exposed, lasted, bounds, start, start, end, rows
            )
        last_start = np.maximum.reduceat(start, begins)
        number = np.repeat(np.arange(begins.size), np.diff(bounds))
        waited = np.clip(last_start[number] - start, 0, np.maximum(lasted, 0))
        share = waited / np.maximum(lasted, 1)
        return cls(
            row=rows,
            member=member,
            call=number,
            start_ns=start,
            lasted_ns=lasted,
            waited_ns=waited,
            exposed_ns=exposed,
            exposed_wait_ns=np.rint(exposed * share).astype(np.int64),
            first=bounds,
            first_start_ns=np.minimum.reduceat(start, begins),
            last_start_ns=last_start,
            end_ns=_middle(end, bounds),
            last_at=_where_largest(start, number, bounds),
        )


def _middle(values: Int64, bounds: Int64) -> Int64:
    """Return the lower median of each call's values."""
    number = np.repeat(np.arange(bounds.size - 1), np.diff(bounds))
    order = np.lexsort((values, number))
    middle: Int64 = values[order[bounds[:-1] + (np.diff(bounds) - 1) // 2]]
    return middle


def _where_largest(values: Int64, number: Int64, bounds: Int64) -> Int64:
    """Return for each call the position of its largest value; of equal ones the lowest rank's."""
    order = np.lexsort((-np.arange(values.size), values, number))
    largest: Int64 = order[bounds[1:] - 1]
    return largest


def matched(arrivals: Arrivals, table: Table, members: Sequence[Member]) -> tuple[Matched, ...]:
    """Return the calls as the report has them, in order of time."""
    ranks = np.array([one.rank for one in members], dtype=np.int64)
    rank, row = ranks[arrivals.member], table.row[arrivals.row]
    of_first = arrivals.row[arrivals.first[:-1]]
    of_last = rank[arrivals.last_at]
    steps, sizes, numbers = (
        steps_of(arrivals, table),
        message_bytes(table, of_first),
        _numbers(arrivals, table),
    )
    kinds = group_kinds(table.groups)
    order = np.lexsort((np.arange(arrivals.calls), arrivals.end_ns))
    found = []
    for call in order.tolist():
        own = slice(int(arrivals.first[call]), int(arrivals.first[call + 1]))
        first = int(of_first[call])
        group = table.groups[int(table.group[first])]
        found.append(
            Matched(
                group=group.name,
                kind=table.kinds[int(table.kind[first])],
                number=int(numbers[call]),
                dtype=table.dtypes[int(table.dtype[first])] if table.dtype[first] != ABSENT else "",
                bytes=int(sizes[call]) if sizes[call] >= 0 else None,
                group_size=group.size or own.stop - own.start,
                step=int(steps[call]) if steps[call] != ABSENT else None,
                rows=ByRank(rank[own], row[own]),
                first_start_ns=int(arrivals.first_start_ns[call]),
                last_start_ns=int(arrivals.last_start_ns[call]),
                end_ns=int(arrivals.end_ns[call]),
                last_rank=int(of_last[call]),
                exposed_ns=ByRank(rank[own], arrivals.exposed_ns[own]),
                waited_ns=ByRank(rank[own], arrivals.waited_ns[own]),
                group_kind=kinds.labels[kinds.code[int(table.group[first])]],
            )
        )
    return tuple(found)


def steps_of(arrivals: Arrivals, table: Table) -> Int64:
    """Return the step of each call, by the ranks that know it."""
    if not arrivals.calls:
        return arrivals.first[:-1]
    result: Int64 = np.maximum.reduceat(table.step[arrivals.row], arrivals.first[:-1])
    return result


def _numbers(arrivals: Arrivals, table: Table) -> Int64:
    """Return the number of each call in its group, by the rank that counted most of them."""
    if not arrivals.calls:
        return arrivals.first[:-1]
    result: Int64 = np.maximum.reduceat(table.number[arrivals.row], arrivals.first[:-1])
    return result


def message_bytes(table: Table, rows: Int64) -> Int64:
    """Return the message as bus bandwidth counts it: the larger side of a call; ABSENT where not recorded.

    All-gather counts what each rank has in the end and reduce-scatter what each had at first, as nccl-tests
    do; the other kinds move as much in as out.
    """
    result: Int64 = np.maximum(table.in_bytes[rows], table.out_bytes[rows])
    return result
