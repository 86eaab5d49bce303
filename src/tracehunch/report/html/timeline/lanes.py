"""Lanes: one for each host thread and GPU stream, in it a line for each level of nesting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.trace.model import GPU_CATS, Cat
from tracehunch.tree.keys import numbered, packed
from tracehunch.tree.nesting import NONE, nest
from tracehunch.units import printable

if TYPE_CHECKING:
    from tracehunch.trace.model import Int64, Trace
    from tracehunch.tree import Tree

DEEPEST: Final = 250
"""Lines of a lane; who nests deeper has gone astray."""

_Label = tuple[str, bool, int, bool]
"""Label, whether a GPU's, its device, whether folded."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane's label, whether it is a GPU's, and for each line where its events begin and end.

    Python frames have a lane of their own, `folded` at first: there are many for each op.
    """

    label: str
    gpu: bool
    device: int
    folded: bool
    lines: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Lanes:
    """All lanes; `rows` are the trace's rows in the order of lane, line and time.

    `too_deep` counts what lies deeper than the lines of a lane go.
    """

    lanes: tuple[Lane, ...]
    rows: Int64
    too_deep: int


def lanes_of(tree: Tree, rows: Int64) -> Lanes:
    """Sort rows into lanes: host threads as they first appear, then streams by device."""
    trace = tree.trace
    keys, labels = _keys(trace, rows)
    start, end = trace.start_ns[rows], trace.end_ns()[rows]
    nesting = nest(keys, start, end, np.arange(rows.size))
    depth = np.empty(rows.size, dtype=np.int64)
    depth[nesting.order] = _depths(nesting.parent)
    order = np.lexsort((start, depth, keys))
    order = order[depth[order] < DEEPEST]
    bounds = _bounds(keys[order], depth[order])
    lanes = []
    for key, label in enumerate(labels):
        lines = tuple((a, b) for lane, a, b in bounds if lane == key)
        lanes.append(Lane(*label, lines))
    return Lanes(tuple(lanes), rows[order], rows.size - order.size)


def _keys(trace: Trace, rows: Int64) -> tuple[Int64, list[_Label]]:
    """Give each row the number of its lane, and name the lanes."""
    on_gpu = np.isin(trace.cat[rows], GPU_CATS)
    host_rows, gpu_rows = rows[~on_gpu], rows[on_gpu]
    keys = np.empty(rows.size, dtype=np.int64)
    keys[~on_gpu], labels = _host_keys(trace, host_rows)
    table = np.searchsorted(trace.gpu.row, gpu_rows)
    device, stream = trace.gpu.device[table].astype(np.int64), trace.gpu.stream[table]
    if gpu_rows.size:
        streams = numbered(packed(device + 1, stream + 1))
        keys[on_gpu] = streams.number + len(labels)
        firsts = streams.first.tolist()
        labels += [(f"GPU {device[at]} stream {stream[at]}", True, int(device[at]), False) for at in firsts]
    return keys, labels


def _host_keys(trace: Trace, rows: Int64) -> tuple[Int64, list[_Label]]:
    """Give each thread a number as it first appears, the Python frames of each one of their own after it."""
    if not rows.size:
        return rows, []
    python = trace.cat[rows] == Cat.PYTHON_FUNCTION
    threads = numbered(trace.thread[rows].astype(np.int64))
    appears = np.argsort(trace.start_ns[rows[threads.first]], kind="stable")
    rank = np.empty(appears.size, dtype=np.int64)
    rank[appears] = np.arange(appears.size)
    lanes = numbered(2 * rank[threads.number] + python)
    labels = []
    for at in lanes.first.tolist():
        label = _thread_label(trace, int(rows[at]))
        frames = bool(python[at])
        labels.append((f"{label}: Python frames" if frames else label, False, NONE, frames))
    return lanes.number, labels


def _thread_label(trace: Trace, row: int) -> str:
    process, thread = trace.threads[int(trace.thread[row])]
    return (
        f"thread {printable(thread)}"
        if process == thread
        else f"thread {printable(thread)} of {printable(process)}"
    )


def _depths(parent: Int64) -> Int64:
    """Return how many spans are around each; parents come before what is inside them."""
    depths: list[int] = []
    for above in parent.tolist():
        depths.append(0 if above == NONE else depths[above] + 1)
    return np.array(depths, dtype=np.int64)


def _bounds(keys: Int64, depth: Int64) -> list[tuple[int, int, int]]:
    """Return lane, first and end of each line of the sorted events."""
    if not keys.size:
        return []
    breaks = np.flatnonzero((np.diff(keys) != 0) | (np.diff(depth) != 0)) + 1
    first = [0, *breaks.tolist()]
    end = [*breaks.tolist(), keys.size]
    return [(int(keys[a]), a, b) for a, b in zip(first, end, strict=True)]
