"""Which launches, GPU activities and ops each call of a scope owns, for all calls at once.

A call owns what is launched inside it on its own thread, and what autograd's threads of its process launch
meanwhile. When the GPU runs it does not matter.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int64
from tracehunch.tree.nesting import NONE
from tracehunch.tree.timeline import Timeline, expand


@dataclass(frozen=True, slots=True)
class Spans:
    """Calls as columns. The whole trace is a call of row NONE and thread NONE, and owns everything."""

    row: Int64
    thread: Int64
    process: Int64
    start_ns: Int64
    end_ns: Int64

    def __len__(self) -> int:
        return self.row.size


@dataclass(frozen=True, slots=True)
class Work:
    """Things that calls own, each done by a thread at a time; ``engine`` marks those that are autograd's."""

    thread: Int64  # NONE where the thread is not known: only the whole trace owns it
    process: Int64
    start_ns: Int64
    engine: NDArray[np.bool_]

    def __len__(self) -> int:
        return self.thread.size


@dataclass(frozen=True, slots=True)
class Pairs:
    """(call, item) pairs, sorted by call and item; ``own``: on the call's own thread."""

    call: Int64
    item: Int64  # position in the work
    own: NDArray[np.bool_]
    first: Int64  # where each call's pairs begin, and the end: one entry more than there are calls

    def of(self, call: int) -> slice:
        """Where a call's pairs are."""
        return slice(int(self.first[call]), int(self.first[call + 1]))


class Layout:
    """One kind of work against all calls: slices of timelines, so that sums cost no more than a look-up."""

    def __init__(self, spans: Spans, work: Work, engine_threads: Int64) -> None:
        self._spans, self._work, self._engine_threads = spans, work, engine_threads
        self._whole = np.flatnonzero(spans.thread == NONE)

    def sums(self, weights: Int64 | NDArray[np.bool_] | None = None) -> tuple[Int64, Int64]:
        """Per call the number of items, or the sum of their weights: on all threads, and on its own."""
        worth = np.ones(len(self._work), dtype=np.int64) if weights is None else weights.astype(np.int64)
        own = _over(self._own, worth)
        everywhere = own + _over(self._engine, worth) - _over(self._engine_on_own, worth)
        everywhere[self._whole] = own[self._whole] = worth.sum()
        return everywhere, own

    def items_of(self, call: int) -> tuple[Int64, NDArray[np.bool_]]:
        """Items of one call, ascending, and which of them are on its own thread."""
        if self._spans.thread[call] == NONE:
            return np.arange(len(self._work)), np.ones(len(self._work), dtype=bool)
        (own, first, last), (engine, low, high) = self._own, self._engine
        mine = own.rows[first[call] : last[call]]
        theirs = engine.rows[low[call] : high[call]]
        foreign = theirs[self._work.thread[theirs] != self._spans.thread[call]]
        if not foreign.size:  # nearly always
            return np.sort(mine), np.ones(mine.size, dtype=bool)
        items = np.sort(np.concatenate([mine, foreign]))
        return items, self._work.thread[items] == self._spans.thread[call]

    @cached_property
    def pairs(self) -> Pairs:
        """All (call, item) pairs."""
        call, at = expand(*self._own[1:])
        other_call, other_at = expand(*self._engine[1:])
        other = self._engine[0].rows[other_at]
        foreign = self._work.thread[other] != self._spans.thread[other_call]
        everything = np.arange(len(self._work), dtype=np.int64)
        calls = [call, other_call[foreign], np.repeat(self._whole, everything.size)]
        items = [self._own[0].rows[at], other[foreign], np.tile(everything, self._whole.size)]
        own = [np.full(part.size, number != 1) for number, part in enumerate(calls)]
        joined, item, is_own = np.concatenate(calls), np.concatenate(items), np.concatenate(own)
        order = np.argsort(joined * everything.size + item)
        joined = joined[order]
        first = np.searchsorted(joined, np.arange(len(self._spans) + 1))
        return Pairs(joined, item[order], is_own[order], first)

    def last_call(self) -> Int64:
        """Per item the last of the calls that own it; NONE where none does."""
        found = np.full(len(self._work), self._whole.max(initial=NONE), dtype=np.int64)
        for timeline, first, last in (self._own, self._engine):
            call, at = expand(first, last)
            latest = np.full(len(self._work), NONE, dtype=np.int64)
            latest[timeline.rows[at]] = call  # which ascends: the last one stays
            np.maximum(found, latest, out=found)
        return found

    @cached_property
    def _own(self) -> tuple[Timeline, Int64, Int64]:
        return self._slices(np.arange(len(self._work)), self._work.thread, self._spans.thread)

    @cached_property
    def _engine(self) -> tuple[Timeline, Int64, Int64]:
        """Autograd's work by process; none for calls on threads that only run autograd."""
        return self._slices(
            np.flatnonzero(self._work.engine), self._work.process, self._served(self._spans.process)
        )

    @cached_property
    def _engine_on_own(self) -> tuple[Timeline, Int64, Int64]:
        """The part of it that is on the call's own thread."""
        return self._slices(
            np.flatnonzero(self._work.engine), self._work.thread, self._served(self._spans.thread)
        )

    def _served(self, group: Int64) -> Int64:
        return np.where(np.isin(self._spans.thread, self._engine_threads), NONE, group)

    def _slices(self, items: Int64, group: Int64, wanted: Int64) -> tuple[Timeline, Int64, Int64]:
        known = items[group[items] != NONE]
        timeline = Timeline(known, group[known], self._work.start_ns[known])
        return timeline, *timeline.slices(wanted, self._spans.start_ns, self._spans.end_ns)


class Ownership:
    """The calls of some scopes and what they own."""

    def __init__(self, spans: Spans, launches: Work, ops: Work, gpu: Work, engine_threads: Int64) -> None:
        self.spans = spans
        self._launches, self._ops, self._gpu = launches, ops, gpu
        self._engine_threads = engine_threads

    @classmethod
    def empty(cls) -> Self:
        """Of a trace without calls."""
        none = np.zeros(0, dtype=np.int64)
        work = Work(none, none, none, none.astype(bool))
        return cls(Spans(none, none, none, none, none), work, work, work, none)

    def of(self, spans: Spans) -> "Ownership":
        """Return the same work against other calls."""
        return Ownership(spans, self._launches, self._ops, self._gpu, self._engine_threads)

    def layout(self, work: Work) -> Layout:
        """Any work against these calls."""
        return Layout(self.spans, work, self._engine_threads)

    @cached_property
    def launches(self) -> Layout:
        """Items: positions in ``Tree.launches``."""
        return self.layout(self._launches)

    @cached_property
    def ops(self) -> Layout:
        """Items: positions in ``Tree.ops``."""
        return self.layout(self._ops)

    @cached_property
    def gpu(self) -> Layout:
        """Items: positions in the trace's GPU table; the time is that of the launch."""
        return self.layout(self._gpu)


def _over(found: tuple[Timeline, Int64, Int64], worth: Int64) -> Int64:
    timeline, first, last = found
    total = np.concatenate([[0], np.cumsum(worth[timeline.rows])])
    sums: Int64 = total[last] - total[first]
    return sums
