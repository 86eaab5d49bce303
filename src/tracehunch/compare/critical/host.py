"""The host's side of a graph: which threads matter, who works for whom, which calls wait for the GPU."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.compare.critical.chains import Chain, chain_of
from tracehunch.compare.critical.segments import segments_of
from tracehunch.compare.critical.threads import Handover, handovers, without_idle
from tracehunch.compare.critical.waits import HostWait, all_waits, waiting_mask
from tracehunch.tree import NONE, Tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.critical.gpu import Activities
    from tracehunch.compare.critical.segments import Segments
    from tracehunch.compare.critical.window import Window
    from tracehunch.trace.model import Int64


@dataclass(frozen=True, slots=True)
class Host:
    """Chains by thread, those of the calls that wait, and when other threads worked for the scope's."""

    chains: Mapping[int, Chain]
    waits: tuple[HostWait, ...]
    handovers: tuple[Handover, ...]

    @property
    def nodes(self) -> int:
        """How many nodes the chains have together."""
        return sum(chain.times_ns.size for chain in self.chains.values())


def host_of(tree: Tree, window: Window, gpu: Activities) -> Host:
    """Find the threads that matter, who works for whom, and their moments."""
    mask = waiting_mask(tree)
    waits = all_waits(tree, gpu, window, mask)
    calls = np.unique(np.r_[gpu.launch[gpu.launch != NONE], [wait.row for wait in waits]].astype(np.int64))
    working = tree.trace.thread[np.r_[window.holds(tree, tree.ops), calls]]
    threads = np.unique(np.r_[working, window.thread].astype(np.int64))
    segments = {thread: segments_of(tree, thread, window.span, mask) for thread in threads.tolist()}
    others = {one: found for one, found in segments.items() if one != window.thread}
    handed = handovers(segments[window.thread], others, tree.autograd_threads)
    chains: dict[int, Chain] = {}
    first = 0
    of = tree.trace.thread[calls]
    for thread in sorted({*of.tolist(), window.thread, *(one.thread for one in handed)}):
        mine = calls[of == thread]
        chains[thread] = _chain(
            tree, window, thread, mine, segments=segments[thread], handed=handed, first=first
        )
        first += chains[thread].times_ns.size
    return Host(chains, waits, tuple(handed))


def _chain(
    tree: Tree,
    window: Window,
    thread: int,
    calls: Int64,
    *,
    segments: Segments,
    handed: Sequence[Handover],
    first: int,
) -> Chain:
    if thread == window.thread:
        points = _points_of_caller(window, handed)
    else:
        mine = [one for one in handed if one.thread == thread]
        points = [window.start_ns, *(moment for one in mine for moment in (one.begun_ns, one.done_ns))]
        segments = without_idle(segments, mine)
    start = tree.trace.start_ns[calls]
    end = np.minimum(tree.trace.end_ns()[calls], window.end_ns)
    return chain_of(thread, calls, start, end, points, first=first, segments=segments)


def _points_of_caller(window: Window, handed: Sequence[Handover]) -> list[int]:
    spans = [(one.called_ns, one.resumed_ns) for one in handed]
    marks = [mark for mark in window.marks_ns if not any(first < mark < last for first, last in spans)]
    return [window.start_ns, window.end_ns, *marks, *(moment for span in spans for moment in span)]
