"""Ops of CUDA-graph replays, where the capture of the graph is in the file."""

import numpy as np

from tracehunch.trace.model import ABSENT, Cat, Int8, Int32, Int64, Trace
from tracehunch.tree.apis import Api
from tracehunch.tree.nesting import NONE

_CAT_OF: dict[int, Cat] = {Api.KERNEL: Cat.KERNEL, Api.MEMCPY: Cat.MEMCPY, Api.MEMSET: Cat.MEMSET}


def captured_ops(trace: Trace, api: Int8, op: Int32, launch: Int32, captured: Int64) -> dict[int, int]:
    """GPU row of a replay -> the op whose launch was captured as its node.

    A replay does not say which graph it is of. It is taken to be of the one capture that recorded as many
    launches, of the same kinds in the same order; if several captures do, or none, nothing is said.
    """
    captures = _captures(trace, api, captured)
    found: dict[int, int] = {}
    if not captures:
        return found
    gpu = trace.gpu.row.astype(np.int64)
    replayed = gpu[(launch[gpu] != NONE) & (api[launch[gpu]] == Api.GRAPH)]
    order = _in_node_order(trace, replayed, launch)
    for part in np.split(order, np.flatnonzero(np.diff(launch[order])) + 1):
        kinds = trace.cat[part].tolist()
        fitting = [rows for rows in captures if [_CAT_OF.get(int(kind)) for kind in api[rows]] == kinds]
        if len(fitting) == 1:
            ops = op[fitting[0]].tolist()
            found.update({row: of for row, of in zip(part.tolist(), ops, strict=True) if of != NONE})
    return found


def _captures(trace: Trace, api: Int8, captured: Int64) -> list[Int64]:
    """Group captured launches by thread, in order of time, cut where a capture ended between them."""
    rows = captured[np.lexsort((trace.start_ns[captured], trace.thread[captured]))]
    if not rows.size:
        return []
    ends = np.flatnonzero(api == Api.CAPTURE_END)
    cuts = [
        number
        for number, (left, right) in enumerate(
            zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True), start=1
        )
        if trace.thread[left] != trace.thread[right] or _between(trace, ends, left, right)
    ]
    return np.split(rows, cuts)


def _between(trace: Trace, ends: Int64, left: int, right: int) -> bool:
    mine = ends[trace.thread[ends] == trace.thread[left]]
    inside = (trace.start_ns[mine] >= trace.start_ns[left]) & (trace.start_ns[mine] <= trace.start_ns[right])
    return bool(inside.any())


def _in_node_order(trace: Trace, rows: Int64, launch: Int32) -> Int64:
    """Replayed activities by launch, then by node of the graph where recorded, else by start."""
    node = np.full(len(trace), ABSENT, dtype=np.int64)
    node[trace.gpu.row] = trace.gpu.graph_node_id
    return rows[np.lexsort((trace.start_ns[rows], node[rows], launch[rows]))]
