"""What part of GPU activities nothing else overlaps on their device."""

from typing import Any

import numpy as np

from tracehunch.facts.intervals import Cover, union_by_group
from tracehunch.facts.model import Facts
from tracehunch.trace.model import UNKNOWN_NS, Int64, Trace
from tracehunch.tree import NONE


def alone_ns(trace: Trace, rows: Any, others: Any) -> Int64:
    """For each GPU row the time in which none of the others runs on its device; 0 where it has no start.

    Time in which several of the rows run counts for the one that started first.
    """
    chosen, rest = np.asarray(rows, dtype=np.int64), np.asarray(others, dtype=np.int64)
    start, end = trace.start_ns, trace.end_ns()
    device = device_column(trace)
    found = np.zeros(chosen.size, dtype=np.int64)
    rest = rest[start[rest] != UNKNOWN_NS]
    for number in np.unique(device[chosen]).tolist():
        mine = np.flatnonzero((device[chosen] == number) & (start[chosen] != UNKNOWN_NS))
        mine = mine[np.argsort(start[chosen[mine]], kind="stable")]
        at = rest[device[rest] == number]
        cover, stop = Cover(start[at], end[at]), end[chosen[mine]]
        reach = np.r_[start[chosen[mine[:1]]], np.maximum.accumulate(stop)[:-1]]
        begin = np.minimum(np.maximum(start[chosen[mine]], reach), stop)
        found[mine] = stop - begin - (cover.until(stop) - cover.until(begin))
    return found


def union_ns(trace: Trace, rows: Any, group: Any, n_groups: int) -> Int64:
    """Time in which at least one of the GPU rows of each group runs, devices added up."""
    chosen, number = np.asarray(rows, dtype=np.int64), np.asarray(group, dtype=np.int64)
    known = trace.start_ns[chosen] != UNKNOWN_NS
    devices, device = np.unique(device_column(trace)[chosen], return_inverse=True)
    key = (number * max(devices.size, 1) + device.reshape(-1))[known]
    groups, lengths = union_by_group(key, trace.start_ns, trace.end_ns(), chosen[known])
    total = np.bincount(groups // max(devices.size, 1), weights=lengths, minlength=n_groups)
    return np.rint(total).astype(np.int64)


def device_column(trace: Trace) -> Int64:
    """Return the device of each GPU row; NONE for other rows."""
    column = np.full(len(trace), NONE, dtype=np.int64)
    column[trace.gpu.row] = trace.gpu.device
    return column


def stream_column(trace: Trace) -> Int64:
    """Return a number for the device and stream of each GPU row; NONE for other rows."""
    column = np.full(len(trace), NONE, dtype=np.int64)
    pairs = np.stack([trace.gpu.device.astype(np.int64), trace.gpu.stream])
    column[trace.gpu.row] = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
    return column


def other_rows(facts: Facts, rows: Any) -> Int64:
    """All GPU rows but these."""
    return np.setdiff1d(facts.tree.trace.gpu.row.astype(np.int64), np.asarray(rows, dtype=np.int64))


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
