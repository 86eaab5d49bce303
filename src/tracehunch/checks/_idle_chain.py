"""The launches of a process in order, and how much of the host's time before each was no ordinary work.

The time between two launches that follow each other, on whatever threads, is that of the thread that makes
the second: what a thread does while another one launches delays nothing.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._idle_host import Held
from tracehunch.checks._idle_pieces import IdleCause
from tracehunch.checks._spans import Spans
from tracehunch.facts.intervals import Cover
from tracehunch.trace.model import Int64, Trace
from tracehunch.tree.keys import Lookup


@dataclass(frozen=True)
class Chain:
    """One entry per launch and one more for the time after the last; in order, without overlaps."""

    thread: Int64
    begin_ns: Int64
    end_ns: Int64
    launches: Int64  # rows, in this order
    held: dict[int, Held]  # by thread

    def position(self, launch_rows: Int64) -> Int64:
        """Return where launches stand in the chain."""
        found: Int64 = self._by_row.position[np.searchsorted(self._by_row.keys, launch_rows)]
        return found

    def spent(self, cause: IdleCause) -> Int64:
        """Host time that went to a cause, from the start to the end of each entry."""
        return np.cumsum(self._within(cause, self.end_ns))

    def spent_until(self, cause: IdleCause, spent: Int64, time_ns: Int64) -> Int64:
        """Host time that went to a cause until any moments; ``spent`` is that of all entries."""
        at = np.minimum(np.searchsorted(self.end_ns, time_ns, "left"), self.end_ns.size - 1)
        found: Int64 = np.r_[0, spent[:-1]][at]
        for thread in self.held:
            mine = self.thread[at] == thread
            cover = self._cover(thread, cause)
            stop = np.clip(time_ns[mine], self.begin_ns[at[mine]], self.end_ns[at[mine]])
            found[mine] += cover.until(stop) - cover.until(self.begin_ns[at[mine]])
        return found

    def all_of(self, *causes: IdleCause) -> Spans:
        """Spans of some causes on all threads, in order of start; they may overlap."""
        return Spans.in_order([held.of(cause) for held in self.held.values() for cause in causes])[0]

    @cached_property
    def causes(self) -> frozenset[int]:
        """The causes that held anything up."""
        return frozenset(cause for held in self.held.values() for cause in np.unique(held.cause).tolist())

    @cached_property
    def _by_row(self) -> Lookup:
        return Lookup.of(self.launches)

    @cached_property
    def _covers(self) -> dict[tuple[int, IdleCause], Cover]:
        """What ``_cover`` made."""
        return {}

    def _cover(self, thread: int, cause: IdleCause) -> Cover:
        """Return how a cause held up a thread."""
        if (thread, cause) not in self._covers:
            spans = self.held[thread].of(cause)
            self._covers[thread, cause] = Cover(spans.start_ns, spans.end_ns)
        return self._covers[thread, cause]

    def _within(self, cause: IdleCause, until_ns: Int64) -> Int64:
        found = np.zeros(until_ns.size, dtype=np.int64)
        for thread in self.held:
            mine = self.thread == thread
            cover = self._cover(thread, cause)
            found[mine] = cover.until(until_ns[mine]) - cover.until(self.begin_ns[mine])
        return found


def chain_of(trace: Trace, launches: Int64, held: dict[int, Held], window: tuple[int, int]) -> Chain:
    """Order the launches of one process."""
    rows = launches[np.argsort(trace.start_ns[launches], kind="stable")]
    reach = np.maximum.accumulate(np.r_[window[0], trace.end_ns()[rows], window[1]])
    thread = trace.thread[rows].astype(np.int64)
    return Chain(np.r_[thread, thread[-1]], reach[:-1], reach[1:], rows, held)


def is_any(chain: Chain, time_ns: Int64, *causes: IdleCause) -> tuple[NDArray[np.bool_], Int64]:
    """Tell which moments lie in spans of some causes (their ends included), and where those spans end."""
    spans = chain.all_of(*causes)
    spans = Spans.of(spans.start_ns, spans.end_ns, spans.row)
    if not len(spans):
        return np.zeros(time_ns.size, dtype=bool), time_ns
    at = np.maximum(np.searchsorted(spans.start_ns, time_ns, "right") - 1, 0)
    inside = (spans.start_ns[at] <= time_ns) & (time_ns <= spans.end_ns[at])
    return inside, spans.end_ns[at]
