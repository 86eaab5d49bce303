"""Bus bandwidth of collectives by kind, group size and message size, timed from the last arrival to the end.

As nccl-tests define it (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md): bytes / time,
times 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter and all-to-all, 1 for broadcast, reduce,
send and receive. Bytes are those of the whole message, for all-gather and reduce-scatter of all ranks
together. What the last rank's kernel lasts is the transfer: all others have come before.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.group_kinds import group_kinds
from tracehunch.compare.ranks.model import Bandwidth
from tracehunch.compare.ranks.waiting import message_bytes
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from tracehunch.compare.ranks.table import Table
    from tracehunch.compare.ranks.waiting import Arrivals
    from tracehunch.trace.model import Int64

_SHARED: Final = frozenset({"allgather", "reducescatter", "alltoall"})
_WHOLE: Final = frozenset({"broadcast", "reduce", "sendrecv"})


def factor(kind: str, ranks: int) -> float | None:
    """Return bus over algorithm bandwidth of a (plain) kind; None where nccl-tests define none."""
    if kind == "allreduce":
        return 2 * (ranks - 1) / ranks
    if kind in _SHARED:
        return (ranks - 1) / ranks
    return 1.0 if kind in _WHOLE else None


def bandwidths(arrivals: Arrivals, table: Table) -> tuple[Bandwidth, ...]:
    """Return a line for each kind, kind of group and power of two, of calls that all ranks recorded."""
    first = arrivals.row[arrivals.first[:-1]]
    sizes, lasted, ranks_of = message_bytes(table, first), transfer_ns(arrivals), arrivals.sizes
    found: dict[tuple[str, int, str, int, int], list[int]] = defaultdict(list)
    groups = group_kinds(table.groups)
    used: dict[tuple[str, int, str, int, int], set[int]] = defaultdict(set)
    for call in np.flatnonzero((sizes > 0) & (lasted > 0) & are_whole(arrivals, table)).tolist():
        kind = table.kinds[int(table.kind[first[call]])]
        group = int(table.group[first[call]])
        of = groups.code[group]
        key = (kind, int(ranks_of[call]), groups.labels[of], of, int(sizes[call]).bit_length())
        found[key].append(call)
        used[key].add(group)
    return tuple(
        replace(_line(key[0], key[1], sizes[calls], lasted[calls]), group=key[2], groups=len(used[key]))
        for key, calls in sorted(found.items())
    )


def transfer_ns(arrivals: Arrivals) -> Int64:
    """Return for each call the time that the last rank's kernel lasted, on its own clock."""
    return arrivals.lasted_ns[arrivals.last_at]


def are_whole(arrivals: Arrivals, table: Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell of each call whether all ranks of its group recorded it: else the last may be another."""
    size = np.array([one.size or ABSENT for one in table.groups] or [ABSENT], dtype=np.int64)
    group = table.group[arrivals.row[arrivals.first[:-1]]]
    whole: np.ndarray[tuple[int], np.dtype[np.bool_]] = size[group] == arrivals.sizes
    return whole


def _line(kind: str, ranks: int, sizes: Int64, lasted: Int64) -> Bandwidth:
    scale = factor(kind, ranks)
    return Bandwidth(
        kind=kind,
        group_size=ranks,
        least_bytes=int(sizes.min()),
        most_bytes=int(sizes.max()),
        count=sizes.size,
        median_us=round(float(np.median(lasted)) / 1e3, 3),
        bus_bytes_per_s=None if scale is None else round(float(np.median(sizes / lasted)) * 1e9 * scale, 1),
    )
