"""What the profiler recorded about synchronisation, and what stands for it elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracehunch.trace.model import LAUNCH_CATS, Cat, Int64
from tracehunch.tree import NONE, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.compare.critical.gpu import Activities


class Syncs:
    """``cuda_sync`` rows by the call that made them, streams by number."""

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
        """Tell whether the profiler recorded what a call waits for."""
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
