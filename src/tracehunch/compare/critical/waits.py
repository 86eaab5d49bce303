"""Which calls of the host wait for the GPU, and for what of it.

Where the profiler recorded synchronisation (``cuda_sync`` rows, with ``enable_cuda_sync_events``) they say
which stream or event was waited for. Elsewhere it is inferred: a call waits for what was launched before it
and ended during it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.checks._idle_rows import copying, waiting
from tracehunch.compare.critical.segments import Part
from tracehunch.compare.critical.syncs import Syncs
from tracehunch.tree import NONE, Tree
from tracehunch.tree.apis import waiting_rows
from tracehunch.tree.names import names_that

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tracehunch.compare.critical.gpu import Activities
    from tracehunch.compare.critical.window import Window
    from tracehunch.trace.model import Int64

_SLACK_NS: Final = 1_000  # by which a call may return before what it waited for ends: stamps are rounded
_FREES: Final = frozenset({"cudaFree", "hipFree"})  # wait for all work of the device
_FULL_QUEUE: Final = 900  # CUDA holds about a thousand launches, then the next one waits
_HELD_NS: Final = 20_000
_SOON_NS: Final = 10_000


@dataclass(frozen=True, slots=True)
class HostWait:
    """A call, and the activities (positions) whose end it waits for."""

    row: int
    targets: tuple[int, ...]
    sees_through: bool = False  # it put the work on the GPU itself, and stayed until it was done
    removable: bool = True  # it is the program's: not a full queue
    part: Part = Part.WAIT  # what it costs beyond the wait
    own_ns: int = 0  # at least so much, if it waits for nothing


def waiting_mask(tree: Tree) -> NDArray[np.bool_]:
    """Mask of the calls in which the host waits for the GPU, blocking copies among them."""
    found = np.zeros(len(tree.trace), dtype=bool)
    if len(found):
        found |= waiting(tree) | copying(tree)
        found[waiting_rows(tree.trace)] = True
    return found


def all_waits(tree: Tree, gpu: Activities, window: Window, mask: NDArray[np.bool_]) -> tuple[HostWait, ...]:
    """Find what calls wait for: those of a mask, those that free memory, launches into a full queue."""
    frees = names_that(tree.trace, lambda name: name in _FREES)[tree.trace.name]
    found = _waits(tree, gpu, window.holds(tree, np.flatnonzero(mask | frees)))
    known = {wait.row for wait in found}
    return (*found, *(wait for wait in _full_queue_waits(tree, gpu) if wait.row not in known))


def _waits(tree: Tree, gpu: Activities, rows: Int64) -> list[HostWait]:
    """Find what each of some calls waits for, those left out that wait for nothing the trace shows."""
    syncs = Syncs(tree, gpu)
    own = _last_of_launch(gpu)
    found = [_wait(tree, gpu, int(row), syncs, own) for row in rows.tolist()]
    return [wait for wait in found if wait.targets]


def _wait(tree: Tree, gpu: Activities, row: int, syncs: Syncs, own: Mapping[int, int]) -> HostWait:
    trace = tree.trace
    begun, returned = int(trace.start_ns[row]), int(trace.end_ns()[row]) + _SLACK_NS
    if row in own:
        waited = _is_seen_through(gpu, own[row], returned)
        return HostWait(row, (own[row],) if waited else (), sees_through=True)
    streams = syncs.streams(row)
    found = [gpu.last_on(stream, syncs.since(row, begun), returned) for stream in streams]
    targets = [at for at in found if at != NONE]
    if trace.name_of(row) in _FREES:
        held = tuple(at for at in targets if gpu.end_ns[at] > begun + _SLACK_NS)
        return HostWait(row, held, part=Part.CALL)
    if "Event" in trace.name_of(row) and not syncs.is_recorded(row):
        # of any stream; what had ended before was not waited for
        last = max(targets, key=lambda at: int(gpu.end_ns[at]), default=NONE)
        targets = [last] if last != NONE and gpu.end_ns[last] > begun else []
    elif len(streams) == 1 and not syncs.is_recorded(row):
        targets = _likelier(gpu, targets, begun, returned)
    return HostWait(row, tuple(targets))


def _likelier(gpu: Activities, guessed: list[int], begun_ns: int, returned_ns: int) -> list[int]:
    """Return what a long wait for one stream is likely to have waited for: what ended right before.

    That is the guess if it did, else what did so on another stream.
    """
    soon = returned_ns - _SOON_NS
    if returned_ns - begun_ns < _SOON_NS or any(gpu.end_ns[at] > soon for at in guessed):
        return guessed
    found = [gpu.last_on(stream, begun_ns, returned_ns) for stream in np.unique(gpu.stream).tolist()]
    near = [at for at in found if at != NONE and gpu.end_ns[at] > max(soon, begun_ns)]
    return [max(near, key=lambda at: int(gpu.end_ns[at]))] if near else guessed


def _is_seen_through(gpu: Activities, activity: int, returned_ns: int) -> bool:
    """Tell whether a call stayed for its activity.

    A copy from pageable memory returns when the last piece is in the driver's hands, shortly before the end.
    """
    begun, ended = int(gpu.start_ns[activity]), int(gpu.end_ns[activity])
    return ended <= returned_ns or returned_ns - begun >= max(_HELD_NS, (ended - begun) // 2)


def _last_of_launch(gpu: Activities) -> dict[int, int]:
    order = np.argsort(gpu.end_ns, kind="stable")
    order = order[gpu.launch[order] != NONE]
    return dict(zip(gpu.launch[order].tolist(), order.tolist(), strict=True))


def _full_queue_waits(tree: Tree, gpu: Activities) -> list[HostWait]:
    """Find launches that were held up because the GPU had some thousand launches waiting."""
    trace, own = tree.trace, _last_of_launch(gpu)
    every = np.array(sorted(own), dtype=np.int64)
    rows = every[trace.dur_ns[every] >= _HELD_NS]
    begun = np.sort(trace.start_ns[every])
    ended = np.sort(gpu.end_ns[[own[row] for row in every.tolist()]])  # a CUDA graph is one launch
    by_end = np.argsort(gpu.end_ns, kind="stable")
    ends = gpu.end_ns[by_end]
    quick = trace.dur_ns[every][trace.dur_ns[every] < _HELD_NS]
    own_ns = int(np.median(quick)) if quick.size else 0
    found = []
    for row in rows.tolist():
        start, stop = int(trace.start_ns[row]), int(trace.end_ns()[row])
        done = int(np.searchsorted(ends, stop, "right"))
        queued = int(np.searchsorted(begun, start, "left")) - int(np.searchsorted(ended, start, "right"))
        if queued >= _FULL_QUEUE and done and ends[done - 1] > start:
            target = int(by_end[done - 1])
            found.append(HostWait(row, (target,), removable=False, part=Part.LAUNCH, own_ns=own_ns))
    return found
