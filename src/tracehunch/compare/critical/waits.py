"""What waits for the GPU: calls of the host, and streams for each other.

Where the profiler recorded synchronisation (``cuda_sync`` rows, with ``enable_cuda_sync_events``) they say
which stream or event was waited for. Elsewhere it is inferred: a call waits for what was launched before it
and ended during it; a stream, for what its thread had put on another stream before it recorded an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracehunch.checks._idle_rows import copying, waiting
from tracehunch.compare.critical.gpu import NEVER
from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE, Tree
from tracehunch.tree.apis import waiting_rows
from tracehunch.tree.names import names_that

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tracehunch.compare.critical.gpu import Activities

_SLACK_NS: Final = 1_000  # by which a call may return before what it waited for ends: stamps are rounded
_FULL_QUEUE: Final = 900  # CUDA holds about a thousand launches, then the next one waits
_HELD_NS: Final = 20_000
_LONG_NS: Final = 20_000
_SOON_NS: Final = 10_000


@dataclass(frozen=True, slots=True)
class HostWait:
    """A call, and the activities (positions) whose end it waits for."""

    row: int
    targets: tuple[int, ...]
    is_copy: bool  # it put the work on the GPU itself
    removable: bool  # it is the program's: not a full queue


@dataclass(frozen=True, slots=True)
class StreamWait:
    """An activity (position) that must not start before another has ended."""

    activity: int
    target: int
    recorded: bool


def waiting_mask(tree: Tree) -> NDArray[np.bool_]:
    """Mask of the calls in which the host waits for the GPU, blocking copies among them."""
    found = np.zeros(len(tree.trace), dtype=bool)
    if len(found):
        found |= waiting(tree) | copying(tree)
        found[waiting_rows(tree.trace)] = True
    return found


def host_waits(tree: Tree, gpu: Activities, rows: Int64) -> list[HostWait]:
    """Find what each of some calls waits for, those left out that wait for nothing the trace shows."""
    syncs = _Syncs(tree, gpu)
    own = _last_of_launch(gpu)
    found = [_wait(tree, gpu, int(row), syncs, own) for row in rows.tolist()]
    return [wait for wait in found if wait.targets]


def _wait(tree: Tree, gpu: Activities, row: int, syncs: _Syncs, own: Mapping[int, int]) -> HostWait:
    trace = tree.trace
    begun, returned = int(trace.start_ns[row]), int(trace.end_ns()[row]) + _SLACK_NS
    if row in own:
        ended = gpu.end_ns[own[row]] <= returned
        return HostWait(row, (own[row],) if ended else (), is_copy=True, removable=True)
    streams = syncs.streams(row)
    found = [gpu.last_on(stream, syncs.since(row, begun), returned) for stream in streams]
    targets = [at for at in found if at != NONE]
    if "Event" in trace.name_of(row) and not syncs.is_recorded(row):
        # of any stream; what had ended before was not waited for
        last = max(targets, key=lambda at: int(gpu.end_ns[at]), default=NONE)
        targets = [last] if last != NONE and gpu.end_ns[last] > begun else []
    return HostWait(row, tuple(targets), is_copy=False, removable=True)


def _last_of_launch(gpu: Activities) -> dict[int, int]:
    order = np.argsort(gpu.end_ns, kind="stable")
    order = order[gpu.launch[order] != NONE]
    return dict(zip(gpu.launch[order].tolist(), order.tolist(), strict=True))


class _Syncs:
    """What the profiler recorded about synchronisation, and what stands for it elsewhere."""

    def __init__(self, tree: Tree, gpu: Activities) -> None:
        self._tree, self._gpu = tree, gpu
        trace = tree.trace
        rows = trace.rows(Cat.SYNC)
        rows = rows[trace.correlation[rows] > 0]
        self._args = {int(trace.correlation[row]): trace.args_of(row) for row in rows.tolist()}
        self.numbers = _stream_numbers(tree, gpu)
        self._calls = _launches_by_thread(tree, gpu)

    def of(self, row: int) -> Mapping[str, Any]:
        """Arguments of the synchronisation that a call made; {} where none was recorded."""
        return self._args.get(int(self._tree.trace.correlation[row]), {})

    def is_recorded(self, row: int) -> bool:
        return bool(self.of(row))

    def since(self, row: int, begun_ns: int) -> int:
        """Return until when work had to be launched for a call to wait for it."""
        event = self.event_record(row)
        return begun_ns if event == NONE else int(self._tree.trace.start_ns[event])

    def event_record(self, row: int) -> int:
        """Row of the call that recorded the event which a call waits for; NONE where not known."""
        number = self.of(row).get("wait_on_cuda_event_record_corr_id")
        if not isinstance(number, int) or number <= 0:
            return NONE
        trace = self._tree.trace
        rows = np.flatnonzero((trace.correlation == number) & np.isin(trace.cat, LAUNCH_CATS))
        return int(rows[0]) if rows.size else NONE

    def stream_waited_for(self, row: int) -> int | None:
        """Return the number of the stream whose event a call waits for, where recorded."""
        return self._number(self.of(row).get("wait_on_stream"), self.of(row).get("device"))

    def streams(self, row: int) -> list[int]:
        """Streams that a call may wait for."""
        args, name = self.of(row), self._tree.trace.name_of(row)
        everything = sorted(set(self.numbers.values()))
        if "Event" in name:
            known = self.stream_waited_for(row)
            return everything if known is None else [known]
        if "Stream" not in name and "Queue" not in name:
            return [at for (device, _), at in self.numbers.items() if args.get("device", device) == device]
        known = self._number(args.get("stream"), args.get("device"))
        return [self._stream_before(row)] if known is None else [known]

    def _number(self, stream: object, device: object) -> int | None:
        for (of_device, of_stream), number in self.numbers.items():
            if stream == of_stream and device in (of_device, None):
                return number
        return None

    def _stream_before(self, row: int) -> int:
        """Stream of the last launch of the call's thread: a value is copied, then waited for."""
        trace = self._tree.trace
        start, stream = self._calls.get(int(trace.thread[row]), (np.zeros(0, np.int64),) * 2)
        at = int(np.searchsorted(start, trace.start_ns[row], "left")) - 1
        return int(stream[at]) if at >= 0 else NONE


def _stream_numbers(tree: Tree, gpu: Activities) -> dict[tuple[int, int], int]:
    table = tree.trace.gpu
    at = np.searchsorted(table.row, gpu.row)
    pairs = zip(table.device[at].tolist(), table.stream[at].tolist(), strict=True)
    return dict(zip(pairs, gpu.stream.tolist(), strict=True))


def _launches_by_thread(tree: Tree, gpu: Activities) -> dict[int, tuple[Int64, Int64]]:
    known = np.flatnonzero(gpu.launch != NONE)
    known = known[np.argsort(gpu.called_ns[known], kind="stable")]
    thread = tree.trace.thread[gpu.launch[known]]
    return {
        number: (gpu.called_ns[known[thread == number]], gpu.stream[known[thread == number]])
        for number in np.unique(thread).tolist()
    }


def full_queue_waits(tree: Tree, gpu: Activities) -> list[HostWait]:
    """Find launches that were held up because the GPU had some thousand launches waiting."""
    trace, own = tree.trace, _last_of_launch(gpu)
    rows = np.array(sorted(own), dtype=np.int64)
    rows = rows[trace.dur_ns[rows] >= _HELD_NS]
    begun = np.sort(gpu.called_ns)
    ended = np.argsort(gpu.end_ns, kind="stable")
    ends = gpu.end_ns[ended]
    found = []
    for row in rows.tolist():
        start, stop = int(trace.start_ns[row]), int(trace.end_ns()[row])
        done = int(np.searchsorted(ends, stop, "right"))
        waiting_now = int(np.searchsorted(begun, start, "left")) - int(np.searchsorted(ends, start, "right"))
        if waiting_now >= _FULL_QUEUE and done and ends[done - 1] > start:
            found.append(HostWait(row, (int(ended[done - 1]),), is_copy=True, removable=False))
    return found


def stream_waits(tree: Tree, gpu: Activities, process: int, span: tuple[int, int]) -> list[StreamWait]:
    """Find which activities wait for another stream: the next one launched after each call that says so."""
    trace = tree.trace
    waits = _calls_named(tree, "StreamWaitEvent", process, span)
    records = _calls_named(tree, "EventRecord", process, span)
    if not waits.size or not len(gpu):
        return []
    syncs = _Syncs(tree, gpu)
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


def _next_launched(tree: Tree, gpu: Activities, row: int, syncs: _Syncs | None) -> int:
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
    late = np.flatnonzero((gpu.launch != NONE) & (gpu.start_ns - ready > _LONG_NS))
    order = np.argsort(gpu.end_ns, kind="stable")
    ends = gpu.end_ns[order]
    found = []
    for activity in late.tolist():
        begun = int(gpu.start_ns[activity])
        first = int(np.searchsorted(ends, begun - _SOON_NS, "left"))
        near = order[first : int(np.searchsorted(ends, begun, "right"))]
        near = near[(gpu.stream[near] != gpu.stream[activity]) & (gpu.device[near] == gpu.device[activity])]
        near = near[gpu.called_ns[near] < gpu.called_ns[activity]]
        if near.size:
            found.append(StreamWait(activity, int(near[-1]), recorded=False))
    return found
