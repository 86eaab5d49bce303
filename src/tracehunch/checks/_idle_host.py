"""What held the host up: stretches of a thread's time that are no ordinary chain of ops and launches."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tracehunch.checks import _idle_rows as rows
from tracehunch.checks._idle_first_use import first_uses
from tracehunch.checks._idle_gaps import Gaps
from tracehunch.checks._idle_pieces import IdleCause
from tracehunch.checks._idle_stretches import LONG_NS, STALL_NS, stretches
from tracehunch.checks._spans import Spans
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE, Tree


@dataclass(frozen=True, slots=True)
class Held:
    """When a thread was held up, by cause; spans of different causes do not overlap."""

    spans: Spans
    cause: Int64  # IdleCause of each span

    def of(self, cause: IdleCause) -> Spans:
        """Spans of one cause."""
        return self.spans.pick(self.cause == cause)


class Host:
    """What held up each of the threads that launch."""

    def __init__(self, tree: Tree, gaps: Gaps) -> None:
        trace = self._trace = tree.trace
        self._window = gaps.window
        self._tree, self._end, self._start = tree, trace.end_ns(), _waiting_from(tree, gaps)
        begun = (trace.start_ns != UNKNOWN_NS) & (trace.dur_ns != UNKNOWN_NS)
        annotation = begun & rows.annotations(tree)
        copying, waiting = rows.copying(tree), rows.waiting(tree)
        self._ops_recorded = rows.were_ops_recorded(tree)
        self._work = begun & ((trace.cat == Cat.CPU_OP) | rows.calls(tree))
        self._own = annotation & rows.named(tree, rows.is_pytorchs_own)
        self._overhead = np.flatnonzero((trace.cat == Cat.OVERHEAD) & begun)
        self._masks = {
            IdleCause.COMPILE: annotation & rows.named(tree, rows.is_compiling),
            IdleCause.FIRST_USE: begun & first_uses(tree, copying | waiting),
            IdleCause.ALLOCATION: begun & rows.allocating(tree),
            IdleCause.COPY: begun & copying,
            IdleCause.SYNC: begun & waiting & ~copying,
            IdleCause.STALL: annotation & rows.named(tree, rows.is_data_loading),
        }
        off = np.array(tree.window.gaps, dtype=np.int64).reshape(-1, 2)
        self._off = Spans.of(off[:, 0], off[:, 1], np.full(len(off), NONE))
        self._busy: dict[int, Spans] = {}

    def held(self, thread: int, threads: Int64) -> Held:
        """Find out when and why a thread was held up; ``threads`` are those of its process that launch."""
        taken, parts, causes = self._off, [], []
        for cause, found, least in self._claims(thread, threads):
            left = found.outside(taken).at_least(least)
            taken = Spans.joined([taken, left])
            parts.append(left)
            causes.append(np.full(len(left), cause, dtype=np.int64))
        spans, order = Spans.in_order(parts)
        return Held(spans, np.concatenate(causes)[order])

    def _claims(self, thread: int, threads: Int64) -> Iterator[tuple[IdleCause, Spans, int]]:
        """Spans by cause, what goes first taking precedence; and how long what is left must be to count."""
        mine = np.flatnonzero(self._trace.thread == thread)
        work = mine[self._work[mine]]
        long = stretches(self._tree, work, self._window)
        outside = self._nobody_works(thread, threads, long.outside, mine)
        yield IdleCause.PROFILER, self._held_by(work, rows.is_the_profilers), 0
        yield IdleCause.COMPILE, self._spans(mine, IdleCause.COMPILE), 0
        yield IdleCause.FIRST_USE, self._held_by(work, rows.is_loading_code), 0
        yield IdleCause.FIRST_USE, self._spans(mine, IdleCause.FIRST_USE), 0
        yield IdleCause.ALLOCATION, self._spans(mine, IdleCause.ALLOCATION), 0
        yield IdleCause.COPY, self._spans(mine, IdleCause.COPY), 0
        yield IdleCause.SYNC, self._spans(mine, IdleCause.SYNC), 0
        if not self._ops_recorded:  # then nobody knows whether a thread was in one
            yield IdleCause.UNKNOWN, outside, STALL_NS
            return
        yield IdleCause.STALL, self._spans(mine, IdleCause.STALL), LONG_NS
        yield IdleCause.LIBRARY, long.library, LONG_NS
        yield IdleCause.STALL, outside, STALL_NS

    def _spans(self, mine: Int64, cause: IdleCause) -> Spans:
        found = mine[self._masks[cause][mine]]
        start = self._start if cause == IdleCause.SYNC else self._trace.start_ns
        return Spans.of(start[found], self._end[found], found)

    def _held_by(self, work: Int64, wanted: rows.Wanted) -> Spans:
        """Overhead that held a thread up: work of it that starts meanwhile shows that it did not."""
        trace = self._trace
        found = self._overhead[rows.named(self._tree, wanted, self._overhead)]
        if not found.size:
            return Spans.empty()
        starts = np.sort(trace.start_ns[work])
        before = np.searchsorted(starts, trace.start_ns[found], "right")
        held = found[before == np.searchsorted(starts, self._end[found], "left")]
        return Spans.of(trace.start_ns[held], self._end[held], held)

    def _nobody_works(self, thread: int, threads: Int64, spans: Spans, mine: Int64) -> Spans:
        """Leave out PyTorch's own Python code on this thread, and what other threads do meanwhile."""
        if not len(spans):
            return spans
        own = mine[self._own[mine]]
        left = spans.outside(Spans.of(self._trace.start_ns[own], self._end[own], own))
        for other in threads[threads != thread].tolist() if len(left) else ():
            left = left.outside(self._busy_spans(other)).at_least(STALL_NS)
        return left

    def _busy_spans(self, thread: int) -> Spans:
        """When a thread was in ops and calls."""
        if thread not in self._busy:
            found = np.flatnonzero((self._trace.thread == thread) & self._work)
            self._busy[thread] = Spans.of(self._trace.start_ns[found], self._end[found], found)
        return self._busy[thread]


def _waiting_from(tree: Tree, gaps: Gaps) -> Int64:
    """Return the start of each row; of calls that launched work for an idle GPU the start of that work.

    A copy that the host waits for is launched first, like any other.
    """
    start = tree.trace.start_ns.copy()
    ended = gaps.next_row != NONE
    launch = tree.launch[gaps.next_row[ended]]
    known = (launch != NONE) & (gaps.start_ns[ended] <= start[launch])
    start[launch[known]] = np.maximum(start[launch[known]], gaps.end_ns[ended][known])
    return start
