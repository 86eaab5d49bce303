"""The GPU activities of a window of time: on which stream, launched by what, after what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.checks._idle_gaps import clock_shift_ns
from tracehunch.trace.model import UNKNOWN_NS, Int64
from tracehunch.tree import NONE, Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEVER: Final = np.iinfo(np.int64).min // 4
"""Launch time of what was launched before anything else, or by nobody that the trace shows."""

_QUEUED_NS: Final = 5_000
"""A launch that returned so long before the stream was free arrived in time, certainly."""
_QUICK_NS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Activities:
    """Activities by stream and start. Positions within these columns stand for activities elsewhere."""

    row: Int64  # of the trace
    start_ns: Int64  # by the host's clock
    end_ns: Int64
    stream: Int64  # numbered over all devices
    device: Int64
    launch: Int64  # row; NONE: not within the window, or unknown
    called_ns: Int64  # start of the launch call; NEVER
    launched_ns: Int64  # end of the launch call; NEVER
    queued_ns: Int64  # the latest that it can have been put on its stream; NEVER: before the window
    previous: Int64  # the activity before on the stream; NONE

    def __len__(self) -> int:
        return self.row.size

    @property
    def owner_ns(self) -> Int64:
        """When the host launched each, or at the latest can have done so; NEVER: before the window."""
        found: Int64 = np.where(self.launch != NONE, self.called_ns, self.queued_ns)
        return found

    def of_stream(self, stream: int) -> slice:
        """Where a stream's activities are."""
        first = int(np.searchsorted(self.stream, stream, "left"))
        return slice(first, int(np.searchsorted(self.stream, stream, "right")))

    def last_on(self, stream: int, called_before_ns: int, ended_by_ns: int) -> int:
        """Return the last activity of a stream that was launched before a moment, if it had ended by another.

        NONE if it had not. Activities that nobody launched count as far as they had ended.
        """
        mine = self.of_stream(stream)
        order = np.maximum.accumulate(self.called_ns[mine])
        at = int(np.searchsorted(order, called_before_ns, "left")) - 1
        while at >= 0 and self.end_ns[mine][at] > ended_by_ns and self.launch[mine][at] == NONE:
            at -= 1
        return mine.start + at if at >= 0 and self.end_ns[mine][at] <= ended_by_ns else NONE


@dataclass(frozen=True, slots=True)
class Usual:
    """What the device usually needs between two activities, and from a launch to the start of its work."""

    gap_ns: int
    latency_ns: int


def activities_of(tree: Tree, process: int, span: tuple[int, int]) -> Activities:
    """Collect what a process launched within a span of time, and what was still to run when it began."""
    trace = tree.trace
    gpu = trace.gpu.row.astype(np.int64)
    shift = clock_shift_ns(tree)
    launch = tree.launch[gpu].astype(np.int64)
    known = launch != NONE
    safe = np.where(known, launch, 0)
    called = np.where(known, trace.start_ns[safe], NEVER) if len(trace) else launch
    timed = (trace.start_ns[gpu] != UNKNOWN_NS) & (trace.dur_ns[gpu] >= 0)
    ours = ~known | (trace.process[safe] == process) if len(trace) else known
    within = known & (called >= span[0]) & (called < span[1])
    earlier = (called < span[0]) & (trace.end_ns()[gpu] + shift > span[0])
    earlier &= known | (trace.start_ns[gpu] + shift < span[1])
    table = np.flatnonzero(timed & ours & (within | earlier))
    pairs = np.stack([trace.gpu.device[table].astype(np.int64), trace.gpu.stream[table]])
    stream = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1) if table.size else table
    start = trace.start_ns[gpu[table]] + shift
    order = np.lexsort((gpu[table], start, stream))
    table, stream, start = table[order], stream[order], start[order]
    launch = np.where(within[table], launch[table], NONE)
    placed = known | _is_before_recording(tree, gpu)
    launched = launch
    if table.size:
        launched = np.where(launch == NONE, NEVER, trace.end_ns()[np.where(launch == NONE, 0, launch)])
    return Activities(
        row=gpu[table],
        start_ns=start,
        end_ns=start + trace.dur_ns[gpu[table]],
        stream=stream,
        device=trace.gpu.device[table].astype(np.int64),
        launch=launch,
        called_ns=np.where(launch == NONE, NEVER, called[table]),
        launched_ns=launched,
        queued_ns=_queued(stream, np.where(placed[table], launched, start), placed[table]),
        previous=_previous(stream),
    )


def _is_before_recording(tree: Tree, rows: Int64) -> NDArray[np.bool_]:
    """Tell which activities were launched before the first call that was recorded: numbers only rise."""
    number = tree.trace.correlation
    first = number[tree.launches][number[tree.launches] > 0].min(initial=np.iinfo(np.int64).max)
    found: NDArray[np.bool_] = (number[rows] > 0) & (number[rows] < first) & (tree.launches.size > 0)
    return found


def _queued(stream: Int64, latest: Int64, known: NDArray[np.bool_]) -> Int64:
    """Where a launch is not known it came before that of the next activity on the stream, and the start."""
    found = latest.copy()
    for at in np.flatnonzero(~known)[::-1].tolist():
        if at + 1 < found.size and stream[at + 1] == stream[at] and found[at + 1] != NEVER:
            found[at] = min(found[at], found[at + 1])
    return found


def _previous(stream: Int64) -> Int64:
    found = np.arange(stream.size, dtype=np.int64) - 1
    found[np.flatnonzero(np.diff(stream, prepend=-1))] = NONE
    return found


def usual_of(tree: Tree, process: int) -> Usual:
    """Measure it over the whole trace, where only the stream, or only the launch, can have been waited for.

    Where no launch met a free stream, the shortest time from a launch to its work stands for the usual one.
    """
    gpu = activities_of(tree, process, (tree.window.start_ns, tree.window.end_ns + 1))
    launched, after = gpu.launch != NONE, gpu.previous != NONE
    free = np.where(after, gpu.end_ns[gpu.previous], NEVER) if len(gpu) else gpu.previous
    queued = launched & after & (gpu.launched_ns + _QUEUED_NS < free) & (gpu.start_ns >= free)
    awaited = launched & (free < gpu.called_ns)
    took = gpu.start_ns - gpu.launched_ns
    latency = _middle(took, awaited) if awaited.any() else int(took[launched].min(initial=_QUICK_NS))
    return Usual(_middle(gpu.start_ns - free, queued), max(latency, 0))


def _middle(values: Int64, chosen: NDArray[np.bool_]) -> int:
    return int(np.sort(values[chosen])[(np.count_nonzero(chosen) - 1) // 2]) if chosen.any() else 0
