"""What part of GPU activities nothing else overlaps on their device."""

from typing import Any

import numpy as np

from tracehunch.checks._once import once
from tracehunch.facts.intervals import Cover, union_by_group
from tracehunch.facts.model import Facts
from tracehunch.trace.model import UNKNOWN_NS, Int64, Trace
from tracehunch.tree import NONE
from tracehunch.tree.keys import distinct, packed
from tracehunch.tree.timeline import expand


def alone_ns(trace: Trace, rows: Any, others: Any) -> Int64:
    """For each GPU row the time in which none of the others runs on its device; 0 where it has no start.

    Time in which several of the rows run counts for the one that started first.
    """
    chosen, rest = np.asarray(rows, dtype=np.int64), np.asarray(others, dtype=np.int64)
    start, end = trace.start_ns, trace.end_ns()
    found = np.zeros(chosen.size, dtype=np.int64)
    rest = rest[start[rest] != UNKNOWN_NS]
    device, of_rest = device_of(trace, chosen), device_of(trace, rest)
    for number in distinct(device).tolist():
        mine = np.flatnonzero((device == number) & (start[chosen] != UNKNOWN_NS))
        mine = mine[np.argsort(start[chosen[mine]], kind="stable")]
        at = rest[of_rest == number]
        cover, stop = Cover(start[at], end[at]), end[chosen[mine]]
        reach = np.r_[start[chosen[mine[:1]]], np.maximum.accumulate(stop)[:-1]]
        begin = np.minimum(np.maximum(start[chosen[mine]], reach), stop)
        found[mine] = stop - begin - (cover.until(stop) - cover.until(begin))
    return found


def union_ns(trace: Trace, rows: Any, group: Any, n_groups: int) -> Int64:
    """Time in which at least one of the GPU rows of each group runs, devices added up."""
    chosen, number = np.asarray(rows, dtype=np.int64), np.asarray(group, dtype=np.int64)
    known = trace.start_ns[chosen] != UNKNOWN_NS
    devices, device = np.unique(device_of(trace, chosen), return_inverse=True)
    key = (number * max(devices.size, 1) + device.reshape(-1))[known]
    groups, lengths = union_by_group(key, trace.start_ns, trace.end_ns(), chosen[known])
    total = np.bincount(groups // max(devices.size, 1), weights=lengths, minlength=n_groups)
    return np.rint(total).astype(np.int64)


def device_of(trace: Trace, rows: Int64) -> Int64:
    """Return the device of each GPU row."""
    found: Int64 = trace.gpu.device[np.searchsorted(trace.gpu.row, rows)].astype(np.int64)
    return found


def stream_column(trace: Trace) -> Int64:
    """Return a number for the device and stream of each GPU row; NONE for other rows."""
    column = np.full(len(trace), NONE, dtype=np.int64)
    column[trace.gpu.row] = packed(trace.gpu.device, trace.gpu.stream)
    return column


def others_beside(facts: Facts, rows: Any) -> Int64:
    """All GPU rows but these that run while one of these does, on the same device."""
    trace, chosen = facts.tree.trace, np.asarray(rows, dtype=np.int64)
    chosen = chosen[trace.start_ns[chosen] != UNKNOWN_NS]
    device, start, end = device_of(trace, chosen), trace.start_ns[chosen], trace.end_ns()[chosen]
    found = [chosen[:0]]
    for number, (ordered, starts, reach) in _by_time(facts).items():
        mine = device == number
        first = np.searchsorted(reach, start[mine], "right")
        last = np.maximum(np.searchsorted(starts, end[mine], "left"), first)
        found.append(ordered[distinct(expand(first, last)[1])])
    return np.setdiff1d(np.concatenate(found), chosen)


@once
def _by_time(facts: Facts) -> dict[int, tuple[Int64, Int64, Int64]]:
    """For each device its activities by start: rows, starts, and until when those so far lasted."""
    trace = facts.tree.trace
    rows = trace.gpu.row.astype(np.int64)
    known = trace.start_ns[rows] != UNKNOWN_NS
    found = {}
    for number in distinct(trace.gpu.device).tolist():
        mine = rows[known & (trace.gpu.device == number)]
        mine = mine[np.argsort(trace.start_ns[mine], kind="stable")]
        found[number] = (mine, trace.start_ns[mine], np.maximum.accumulate(trace.end_ns()[mine]))
    return found


def overlapped_ns(trace: Trace, rows: Any) -> Int64:
    """For each GPU row how much of it the activities just before and just after on its device overlap."""
    table = trace.gpu.row.astype(np.int64)
    start, end, device = trace.start_ns[table], trace.end_ns()[table], trace.gpu.device
    found = np.zeros(len(trace), dtype=np.int64)
    for number in np.unique(device).tolist():
        mine = np.flatnonzero((device == number) & (start != UNKNOWN_NS))
        mine = mine[np.argsort(start[mine], kind="stable")]
        before = np.maximum(np.maximum.accumulate(end[mine])[:-1] - start[mine[1:]], 0)
        after = np.maximum(end[mine[:-1]] - start[mine[1:]], 0)
        found[table[mine[1:]]] += np.minimum(before, (end - start)[mine[1:]])
        found[table[mine[:-1]]] += np.minimum(after, (end - start)[mine[:-1]])
    return found[np.asarray(rows, dtype=np.int64)]
