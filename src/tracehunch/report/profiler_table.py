"""The profiler's own table, ``key_averages().table()``, computed from a trace file.

The semantics are those of PyTorch 2.11 to 2.13 (``torch/autograd/profiler_util.py``), as far as a file shows
them; the differences that remain are explained in docs/profiler-table.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import UNKNOWN_NS, Cat, Int32, Int64, Trace
from tracehunch.tree import NONE, Tree

Bool = NDArray[np.bool_]

HOST_CATS: Final = (Cat.CPU_OP, Cat.USER_ANNOTATION, Cat.RUNTIME, Cat.DRIVER, Cat.OVERHEAD)
GPU_ROW_CATS: Final = (Cat.KERNEL, Cat.MEMCPY, Cat.MEMSET, Cat.GPU_ANNOTATION)

# What the profiler keeps out of its table.
_HIDDEN: Final = frozenset(
    {
        "[memory]",
        "[OutOfMemory]",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)
_ANNOTATION_PADDING_NS: Final = 2  # Kineto's writer widens a GPU annotation by 1 ns at each end, for viewers


@dataclass(frozen=True, slots=True)
class Row:
    """All events of one name on one side (host or device); times are sums, nanoseconds."""

    name: str
    on_device: bool
    annotation: bool
    self_cpu_ns: int
    cpu_ns: int
    self_device_ns: int
    device_ns: int
    calls: int


@dataclass(frozen=True, slots=True)
class ProfilerTable:
    """The rows by self device time (by self CPU time where there is none), and the totals below the table."""

    rows: tuple[Row, ...]
    self_cpu_ns: int
    self_device_ns: int
    has_device: bool


def profiler_table(tree: Tree) -> ProfilerTable:
    """Compute the table from all rows of a trace."""
    rows = [*_host_rows(tree), *_device_rows(tree.trace)]
    has_device = any(row.self_device_ns for row in rows)
    rows.sort(key=lambda row: -(row.self_device_ns if has_device else row.self_cpu_ns))
    return ProfilerTable(
        rows=tuple(rows),
        self_cpu_ns=sum(row.self_cpu_ns for row in rows),
        self_device_ns=sum(row.self_device_ns for row in rows if row.on_device and not row.annotation),
        has_device=has_device,
    )


def _host_rows(tree: Tree) -> list[Row]:
    trace = tree.trace
    rows = _shown(trace, HOST_CATS)
    order = np.lexsort((-trace.end_ns()[rows], trace.start_ns[rows], trace.thread[rows]))
    rows = rows[order]
    parent = _nested(trace.thread[rows], trace.start_ns[rows], trace.end_ns()[rows])
    duration = _durations(trace, rows)
    self_cpu = duration - _summed(parent, duration, len(rows))
    self_device = _launched_ns(tree, rows)
    device = _with_descendants(parent, self_device)
    merged = _merged_into_parent(trace.name[rows], parent)
    return _grouped(trace, rows, merged, parent, (self_cpu, duration, self_device, device))


def _device_rows(trace: Trace) -> list[Row]:
    rows = _shown(trace, GPU_ROW_CATS)
    rows = rows[np.lexsort((-trace.end_ns()[rows], trace.start_ns[rows]))]
    duration = _durations(trace, rows)
    if (
        trace.start_ns[rows] % 1000
    ).any():  # older files hold whole microseconds, and no padding of nanoseconds
        duration = duration - np.where(trace.cat[rows] == Cat.GPU_ANNOTATION, _ANNOTATION_PADDING_NS, 0)
    nothing = np.zeros_like(duration)
    parent = np.full(len(rows), NONE, dtype=np.int64)
    return _grouped(
        trace, rows, np.zeros(len(rows), dtype=np.bool_), parent, (nothing, nothing, duration, duration)
    )


def _shown(trace: Trace, cats: tuple[Cat, ...]) -> Int64:
    rows = trace.rows(*cats)
    rows = rows[trace.start_ns[rows] != UNKNOWN_NS]
    hidden = np.array([name in _HIDDEN for name in trace.names], dtype=bool)
    shown: Int64 = rows[~hidden[trace.name[rows]]]
    return shown


def _durations(trace: Trace, rows: Int64) -> Int64:
    return np.where(trace.dur_ns[rows] == UNKNOWN_NS, 0, trace.dur_ns[rows])


def _nested(thread: Int32, start: Int64, end: Int64) -> Int64:
    """Position of the innermost interval around each on its thread; they come sorted by thread, start, -end.

    An interval that only partly overlaps an open one ends it, as in the profiler.
    """
    parent = np.full(len(thread), NONE, dtype=np.int64)
    open_: list[int] = []
    threads, starts, ends = thread.tolist(), start.tolist(), end.tolist()
    for at in range(len(threads)):
        while open_ and (
            threads[open_[-1]] != threads[at] or starts[at] >= ends[open_[-1]] or ends[at] > ends[open_[-1]]
        ):
            open_.pop()
        if open_:
            parent[at] = open_[-1]
        open_.append(at)
    return parent


def _summed(parent: Int64, values: Int64, n: int) -> Int64:
    """Sum of the values of each row's children."""
    total = np.zeros(n, dtype=np.int64)
    inner = parent != NONE
    np.add.at(total, parent[inner], values[inner])
    return total


def _with_descendants(parent: Int64, own: Int64) -> Int64:
    """Each row's own value and that of everything nested in it."""
    total = own.copy()
    at = np.flatnonzero((own > 0) & (parent != NONE))
    values, at = own[at], parent[at]
    while len(at):
        np.add.at(total, at, values)
        up = parent[at]
        values, at = values[up != NONE], up[up != NONE]
    return total


def _launched_ns(tree: Tree, rows: Int64) -> Int64:
    """Durations of the GPU activities that each host row launched itself.

    The profiler links by ``External id``; what has none it charges to nobody. Where a file has no such ids at
    all, the launch decides.
    """
    trace = tree.trace
    gpu = trace.gpu.row.astype(np.int64)
    owner = _owners_by_external_id(trace, gpu)
    if not (trace.external_id[gpu] > 0).any():
        owner = tree.op[gpu].astype(np.int64)
    position = np.full(len(trace) + 1, NONE, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    at = position[owner]
    total = np.zeros(len(rows), dtype=np.int64)
    np.add.at(total, at[at != NONE], _durations(trace, gpu)[at != NONE])
    return total


def _owners_by_external_id(trace: Trace, gpu: Int64) -> Int64:
    """Host row of each GPU row by ``External id``; NONE where there is none, or several."""
    host = trace.rows(Cat.CPU_OP, Cat.USER_ANNOTATION)
    host = host[trace.external_id[host] > 0]
    ids, first, times = np.unique(trace.external_id[host], return_index=True, return_counts=True)
    if not len(ids):
        return np.full(len(gpu), NONE, dtype=np.int64)
    wanted = trace.external_id[gpu]
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    owner: Int64 = np.where((ids[at] == wanted) & (times[at] == 1), host[first[at]], NONE)
    return owner


def _merged_into_parent(name: Int32, parent: Int64) -> Bool:
    """Whether a row is the only child of one of its own name: the profiler counts the two as one call."""
    n_children = np.bincount(parent[parent != NONE], minlength=len(name))
    merged: Bool = (parent != NONE) & (name[parent] == name) & (n_children[parent] == 1)
    return merged


def _grouped(
    trace: Trace, rows: Int64, merged: Bool, parent: Int64, times: tuple[Int64, Int64, Int64, Int64]
) -> list[Row]:
    """One Row for each name and kind, in order of first appearance; merged rows add their self times only."""
    self_cpu, cpu, self_device, device = times
    keep = ~merged
    annotation = np.isin(trace.cat[rows], (Cat.USER_ANNOTATION, Cat.GPU_ANNOTATION))
    annotation = annotation[_survivors(merged, parent)]
    names = _table_names(trace)
    key = names[1][trace.name[rows]] * 2 + annotation
    keys, first, group = np.unique(key, return_index=True, return_inverse=True)
    sums = [np.zeros(len(keys), dtype=np.int64) for _ in range(5)]
    for total, values in zip(
        sums, (self_cpu, cpu * keep, self_device, device * keep, keep.astype(np.int64)), strict=True
    ):
        np.add.at(total, group, values)
    on_device = bool(len(rows)) and int(trace.cat[rows[0]]) in GPU_ROW_CATS
    by_start = np.argsort(trace.start_ns[rows[first]], kind="stable")
    return [
        Row(names[0][keys[g] // 2], on_device, bool(keys[g] % 2), *(int(total[g]) for total in sums))
        for g in by_start
    ]


def _survivors(merged: Bool, parent: Int64) -> Int64:
    """Position of the row that each one is counted with: itself, or the outermost of its merged chain."""
    at = np.arange(len(merged))
    while len(merged) and (again := merged[at]).any():
        at = np.where(again, parent[at], at)
    return at


def _table_names(trace: Trace) -> tuple[list[str], Int64]:
    """Return the table's names (all steps are one), and for each name of the trace its index there."""
    index: dict[str, int] = {}
    shown = ["ProfilerStep*" if name.startswith("ProfilerStep#") else name for name in trace.names]
    code = np.array([index.setdefault(name, len(index)) for name in shown], dtype=np.int64)
    return list(index), code
