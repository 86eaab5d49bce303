"""Collectives matched across ranks: which rows of the table are the same call of the same group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.keys import distinct_rows
from tracehunch.compare.ranks.reference import Reference
from tracehunch.compare.ranks.shifts import TIGHT_NS, Calls, overlaps, pair
from tracehunch.compare.ranks.table import ends_together, is_point_to_point
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.ranks.table import Table
    from tracehunch.trace.model import Int64

_UNEVEN: Final = frozenset({"alltoall", "gather", "scatter", "sendrecv"})
"""Kinds of which ranks may move different amounts in one call."""
_FEWEST_APART: Final = 4
_MOST_BARREN: Final = 3
"""Turns in which nothing pairs, after which no more are tried: the ranks may be many."""


@dataclass(frozen=True, slots=True)
class Matches:
    """``call`` numbers, for each row of the table, the collective that it is; ABSENT: matched with none."""

    call: Int64
    unmatched: int
    apart: tuple[int, ...]  # members whose recording is of another time than that of the others


def match(table: Table) -> Matches:
    """Match the rows of all ranks, group by group."""
    call = np.full(len(table), ABSENT, dtype=np.int64)
    signature = _signatures(table)
    calls = 0
    apart: set[int] = set()
    together: set[int] = set()
    for rows in _by_group(table):
        for turn, (mine, own) in enumerate(_matched_in_group(table, rows, signature, apart)):
            call[mine] = np.where(own == ABSENT, ABSENT, own + calls)
            calls += int(own.max(initial=-1)) + 1
            of = np.unique(table.member[mine]).tolist()
            if not turn:
                first = table.member[mine[0]]
                together.update(of)
            elif len(of) > 1 and not _overlap(table, mine, rows[table.member[rows] == first]):
                apart.update(of)
    call = _shared_only(call)
    return Matches(call, int((call == ABSENT).sum()), tuple(sorted(apart - together)))


def _signatures(table: Table) -> Int64:
    """Return for each row a number for what two rows must have in common to be one collective."""
    uneven = np.array([kind in _UNEVEN for kind in (*table.kinds, "")], dtype=bool)[table.kind]
    sizes = [np.where(uneven, ABSENT, column) for column in (table.in_bytes, table.out_bytes)]
    # A broadcast's or reduce's receiver may state no input, or none at all: the larger tells.
    largest = np.maximum(*sizes)
    return distinct_rows(table.kind, table.dtype, largest)[1]


def _by_group(table: Table) -> Iterator[Int64]:
    """Yield the rows of each group and recording, by member and number."""
    rows = np.flatnonzero(table.group != ABSENT)
    order = rows[np.lexsort((table.row[rows], table.number[rows], table.member[rows],
                             table.recording[rows], table.group[rows]))]  # fmt: skip
    yield from _split(order, table.group[order], table.recording[order])


def _split(rows: Int64, *keys: Int64) -> list[Int64]:
    if not rows.size:
        return []
    changes = np.zeros(rows.size - 1, dtype=bool)
    for key in keys:
        changes |= np.diff(key) != 0
    return np.split(rows, np.flatnonzero(changes) + 1)


def _matched_in_group(
    table: Table, rows: Int64, signature: Int64, apart: set[int]
) -> Iterator[tuple[Int64, Int64]]:
    """Yield rows of a group with the numbers of their calls, turn by turn.

    Ranks that pair with none of a turn are held against each other in the next.
    """
    left, barren = _split(rows, table.member[rows]), 0
    while len(left) > 1 and barren < _MOST_BARREN:  # ranks
        found, left = _turn(table, left, signature, apart)
        barren += len(found) == 1
        yield np.concatenate([part for part, _ in found]), np.concatenate([own for _, own in found])


def _turn(
    table: Table, parts: Sequence[Int64], signature: Int64, apart: set[int]
) -> tuple[list[tuple[Int64, Int64]], list[Int64]]:
    """Return the calls of the rank with the most and those that pair with them, numbered; and who is left."""
    most = max(range(len(parts)), key=lambda at: (len(parts[at]), -at))
    reference = Reference.of(_calls(table, parts[most], signature))
    found = [(parts[most], reference.numbers)]
    left, known = [*parts[:most], *parts[most + 1 :]], 0
    while left and len(reference.calls) > known:  # what one rank adds may be all that another shares
        known, trying, left = len(reference.calls), left, []
        for part in trying:
            own = _calls(table, part, signature)
            pairs = pair(own, reference.calls)
            if not len(pairs):
                left.append(part)
            elif _are_apart(own, reference.calls, pairs.distance_ns(own, reference.calls)):
                left.append(part)
                apart.add(int(table.member[part[0]]))
            else:
                reference, numbers = reference.joined(own, pairs)
                found.append((part, numbers))
    return found, left


def _calls(table: Table, rows: Int64, signature: Int64) -> Calls:
    together = np.array([*map(ends_together, table.kinds), False], dtype=bool)[table.kind[rows]]
    if not together.any():  # a send and its receive end nearly together, too
        together = np.array([*map(is_point_to_point, table.kinds), False], dtype=bool)[table.kind[rows]]
    return Calls(
        number=table.number[rows],
        sequence=table.sequence[rows],
        signature=signature[rows],
        step=table.step[rows],
        end_ns=table.end_ns[rows],
        together=together,
    )


def _overlap(table: Table, rows: Int64, others: Int64) -> bool:
    """Whether rows end while others do, by the clocks as they are."""
    ends, other = table.end_ns[rows], table.end_ns[others]
    return bool(ends.min() <= other.max() and other.min() <= ends.max())


def _are_apart(own: Calls, other: Calls, distance: Int64) -> bool:
    """Whether calls that look alike were recorded at another time: they ended at no fixed distance.

    Where the recordings overlap they are of one time whatever the distances. Where they do not, clocks of
    two hosts may be apart, but what ends together keeps its distance.
    """
    if overlaps(own, other):
        return False
    spread = float(np.median(np.abs(distance - np.median(distance))))
    return distance.size < _FEWEST_APART or spread > TIGHT_NS


def _shared_only(call: Int64) -> Int64:
    """Return the calls that at least two ranks have, numbered from 0; ABSENT for the others."""
    known = call != ABSENT
    names, where, counts = np.unique(call[known], return_inverse=True, return_counts=True)
    shared = counts >= 2  # ranks
    new = np.where(shared, np.cumsum(shared) - 1, ABSENT)
    result = np.full(call.size, ABSENT, dtype=np.int64)
    if names.size:
        result[known] = new[where.reshape(-1)]
    return result
