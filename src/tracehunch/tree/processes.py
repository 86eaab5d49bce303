"""Which process a GPU row belongs to, in files that hold the traces of several.

A GPU row carries its device where a host row carries its process, and correlation ids are unique only
within a process.
"""

import numpy as np

from tracehunch.trace.model import LAUNCH_CATS, Cat, Int32, Int64, Trace
from tracehunch.tree.nesting import NONE


def host_processes(trace: Trace) -> Int64:
    """Find the processes that ran ops, annotations or calls."""
    return _present(trace.process[trace.rows(Cat.CPU_OP, Cat.USER_ANNOTATION, *LAUNCH_CATS)])


def processes_of_gpu_rows(trace: Trace, launches: Int64, gpu: Int64) -> Int32 | None:
    """Process of each GPU row, NONE where nothing tells; None if there is only one process.

    Traces put one after the other keep their rows together, so that the place in the file tells. Where rows
    are mixed, a device tells if all its ids are found, in the right order of time, among the launches of one
    process only.
    """
    processes = _present(trace.process[launches])
    if processes.size < 2:  # one process: nothing to tell apart
        return None
    owner = np.full(gpu.size, NONE, dtype=np.int32)
    by_place = _by_place(trace, gpu)
    if by_place is not None:
        return by_place
    device = trace.gpu.device
    for number in np.unique(device).tolist():
        mine = np.flatnonzero(device == number)
        scores = [_causal(trace, launches[trace.process[launches] == p], gpu[mine]) for p in processes]
        best = int(np.argmax(scores))
        if scores[best] == 1.0 and sorted(scores)[-2] < 1.0:
            owner[mine] = processes[best]
    return owner


def _present(process: Int32) -> Int64:
    """Return the distinct processes, ascending: to count numbers is quicker than to sort them."""
    return np.flatnonzero(np.bincount(process))


def _by_place(trace: Trace, gpu: Int64) -> Int32 | None:
    """By the stretch of the file that a row stands in; None where the stretches of the processes overlap."""
    processes = host_processes(trace)
    host = trace.rows(Cat.CPU_OP, Cat.USER_ANNOTATION, *LAUNCH_CATS)
    event, process = trace.event[host], trace.process[host]
    first = np.array([event[process == p].min() for p in processes])
    last = np.array([event[process == p].max() for p in processes])
    order = np.argsort(first)
    if (last[order][:-1] > first[order][1:]).any():
        return None
    at = np.maximum(np.searchsorted(first[order], trace.event[gpu], "right") - 1, 0)
    return processes[order][at].astype(np.int32)


def _causal(trace: Trace, launches: Int64, gpu: Int64) -> float:
    """Share of GPU rows whose id an earlier launch has; 0 where rows share ids (two processes' GPU)."""
    wanted = trace.correlation[gpu]
    ids, counts = np.unique(wanted[wanted > 0], return_counts=True)
    order = np.argsort(trace.correlation[launches], kind="stable")
    keys = trace.correlation[launches][order]
    if not keys.size or not ids.size or (counts > 1).any():
        return 0.0
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    before = trace.start_ns[launches[order[at]]] <= trace.start_ns[gpu]
    return float(((keys[at] == wanted) & before)[wanted > 0].mean())
