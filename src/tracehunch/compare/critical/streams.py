"""Which activities wait for another stream: by what the program asked for, and by when they ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.critical.gpu import NEVER
from tracehunch.compare.critical.syncs import Syncs
from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS, Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import names_that

if TYPE_CHECKING:
    from tracehunch.compare.critical.gpu import Activities

_SLACK_NS: Final = 1_000  # stamps are rounded
_LONG_NS: Final = 20_000
_LONG_IN_GRAPH_NS: Final = 3_000  # nodes of a CUDA graph are on the device, and follow each other at once
_SOON_NS: Final = 10_000


@dataclass(frozen=True, slots=True)
class StreamWait:
    """An activity (position) that must not start before another has ended."""

    activity: int
    target: int
    recorded: bool


def stream_waits(tree: Tree, gpu: Activities, process: int, span: tuple[int, int]) -> list[StreamWait]:
    """Find which activities wait for another stream: the next one launched after each call that says so."""
    trace = tree.trace
    waits = _calls_named(tree, "StreamWaitEvent", process, span)
    records = _calls_named(tree, "EventRecord", process, span)
    if not waits.size or not len(gpu):
        return []
    syncs = Syncs(tree, gpu)
    found = []
    for row in waits.tolist():
        recorded = syncs.event_record(row)
        event = recorded if recorded != NONE else _last_before(trace.start_ns, records, trace.start_ns[row])
        activity = _next_launched(tree, gpu, row, syncs if recorded != NONE else None)
        if NONE in (activity, event):
            continue
        known = syncs.stream_waited_for(row)
        target = _waited_for(gpu, activity, int(trace.start_ns[event]), known)
        if target != NONE:
            found.append(StreamWait(activity, target, recorded != NONE))
    return found


def _calls_named(tree: Tree, what: str, process: int, span: tuple[int, int]) -> Int64:
    trace = tree.trace
    wanted = names_that(trace, lambda name: what in name)
    rows = np.flatnonzero(np.isin(trace.cat, LAUNCH_CATS) & wanted[trace.name] & (trace.process == process))
    start = trace.start_ns[rows]
    rows = rows[(start != UNKNOWN_NS) & (start >= span[0]) & (start < span[1])]
    found: Int64 = rows[np.argsort(trace.start_ns[rows], kind="stable")]
    return found


def _last_before(start_ns: Int64, rows: Int64, moment: int) -> int:
    at = int(np.searchsorted(start_ns[rows], moment, "right")) - 1
    return int(rows[at]) if at >= 0 else NONE


def _next_launched(tree: Tree, gpu: Activities, row: int, syncs: Syncs | None) -> int:
    """Return the activity launched next: on the stream that waits where that is known, else by the thread."""
    trace = tree.trace
    after = (gpu.launch != NONE) & (gpu.called_ns >= trace.start_ns[row])
    stream = None if syncs is None else syncs.of(row).get("stream")
    if syncs is not None and isinstance(stream, int):
        after &= gpu.stream == syncs.numbers.get((int(syncs.of(row).get("device", 0)), stream), NONE)
    else:
        after[after] = trace.thread[gpu.launch[after]] == trace.thread[row]
    at = np.flatnonzero(after)
    return int(at[np.argmin(gpu.called_ns[at])]) if at.size else NONE


def _waited_for(gpu: Activities, activity: int, recorded_ns: int, stream: int | None) -> int:
    """Return the activity that an event stands for: the last one before it on another stream."""
    begun = int(gpu.start_ns[activity]) + _SLACK_NS
    others = np.unique(gpu.stream).tolist() if stream is None else [stream]
    found = [gpu.last_on(one, recorded_ns, begun) for one in others if one != gpu.stream[activity]]
    return max((at for at in found if at != NONE), key=lambda at: int(gpu.end_ns[at]), default=NONE)


def coinciding_waits(gpu: Activities, known: list[StreamWait]) -> list[StreamWait]:
    """Infer what an activity waited for where neither its launch nor its stream explains when it started.

    That is what ended on another stream of its device right before, if it was launched earlier.
    """
    free = np.where(gpu.previous == NONE, NEVER, gpu.end_ns[gpu.previous]) if len(gpu) else gpu.previous
    ready = np.maximum(gpu.launched_ns, free)
    for wait in known:
        ready[wait.activity] = max(ready[wait.activity], gpu.end_ns[wait.target])
    after = gpu.previous
    in_graph = (after != NONE) & (gpu.launch != NONE) & (gpu.launch == gpu.launch[after])
    late = np.flatnonzero(
        (ready != NEVER) & (gpu.start_ns - ready > np.where(in_graph, _LONG_IN_GRAPH_NS, _LONG_NS))
    )
    order = np.argsort(gpu.end_ns, kind="stable")
    ends = gpu.end_ns[order]
    found = []
    for activity in late.tolist():
        begun = int(gpu.start_ns[activity])
        first = int(np.searchsorted(ends, begun - _SOON_NS, "left"))
        near = order[first : int(np.searchsorted(ends, begun, "right"))]
        near = near[(gpu.stream[near] != gpu.stream[activity]) & (gpu.device[near] == gpu.device[activity])]
        near = near[gpu.owner_ns[near] <= gpu.owner_ns[activity]]
        if near.size and gpu.end_ns[near[-1]] > ready[activity]:
            found.append(StreamWait(activity, int(near[-1]), recorded=False))
    return found
