"""Lay each gap of a device to what held up the thread that launched the activity after it."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._idle_chain import Chain, chain_of, is_any
from tracehunch.checks._idle_credit import accounted
from tracehunch.checks._idle_gaps import ARRIVAL_NS, Gaps, gaps_of
from tracehunch.checks._idle_host import Host
from tracehunch.checks._idle_pieces import Idle, IdleCause
from tracehunch.checks._spans import intersect
from tracehunch.trace.model import UNKNOWN_NS, Int64, Trace
from tracehunch.tree import NONE, Link, Tree
from tracehunch.tree.keys import distinct

Bool = NDArray[np.bool_]

_CARRIED: Final = (
    IdleCause.PROFILER,
    IdleCause.COMPILE,
    IdleCause.FIRST_USE,
    IdleCause.ALLOCATION,
    IdleCause.LIBRARY,
    IdleCause.STALL,
    IdleCause.COPY,
    IdleCause.SYNC,
)
_WAITS: Final = (IdleCause.COPY, IdleCause.SYNC)


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Parts of gaps. ``row``: the host row to blame."""

    gap: Int64
    start_ns: Int64
    end_ns: Int64
    cause: Int64
    row: Int64

    def __len__(self) -> int:
        return self.gap.size

    @classmethod
    def of(cls, gap: Int64, start_ns: Int64, end_ns: Int64, cause: Int64 | int, row: Int64) -> Self:
        return cls(gap, start_ns, end_ns, np.broadcast_to(np.asarray(cause, dtype=np.int64), gap.shape), row)

    def pick(self, wanted: Int64) -> "_Pieces":
        return _Pieces(*(getattr(self, name)[wanted] for name in _Pieces.__slots__))

    @classmethod
    def joined(cls, parts: "list[_Pieces]") -> "_Pieces":
        """Put parts together, in order of gap and time; empty ones go, like ones that touch become one."""
        columns = [np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__]
        kept = np.flatnonzero(columns[2] > columns[1])
        order = kept[np.lexsort((columns[1][kept], columns[0][kept]))]
        gap, start, end, cause, row = (column[order] for column in columns)
        alike = (np.diff(gap) == 0) & (np.diff(cause) == 0) & (np.diff(row) == 0) & (start[1:] == end[:-1])
        first = np.r_[True, ~alike][: gap.size]
        last = np.r_[~alike, True][: gap.size]
        return cls(gap[first], start[first], end[last], cause[first], row[first])


@dataclass(frozen=True, slots=True)
class _Case:
    """The gaps, with the launch to ask about each, and until when each is the host's."""

    gaps: Gaps
    launch: Int64
    host_end_ns: Int64


def partition(tree: Tree) -> Idle:
    """Partition the idle time of a trace."""
    gaps = gaps_of(tree)
    launch = _launches(tree, gaps)
    case = _Case(gaps, launch, _host_ends(tree, gaps, launch))
    beyond = _beyond_host(tree, case)
    pieces = [_Pieces.of(np.arange(len(gaps)), case.host_end_ns, gaps.end_ns, beyond, launch)]
    host = Host(tree, gaps)
    process = np.where(launch == NONE, NONE, tree.trace.process[launch]) if len(gaps) else launch
    for number in distinct(process[process != NONE]).tolist():
        mine = np.flatnonzero((process == number) & (case.host_end_ns > gaps.start_ns))
        pieces.append(_blamed(_chain(tree, host, number, gaps.window), tree.trace, mine, case))
    return _idle(tree, case, _Pieces.joined(pieces))


def _launches(tree: Tree, gaps: Gaps) -> Int64:
    """Return the launch of the activity after each gap; for the rest of the window the last launch before."""
    trace = tree.trace
    if not len(gaps):
        return gaps.next_row
    usable = np.zeros(len(trace) + 1, dtype=bool)  # one more, for NONE
    usable[tree.launches] = trace.start_ns[tree.launches] != UNKNOWN_NS
    launch = np.where(gaps.next_row == NONE, NONE, tree.launch[gaps.next_row]).astype(np.int64)
    launch[~usable[launch]] = NONE
    of_activity = np.where(usable[tree.launch[trace.gpu.row]], tree.launch[trace.gpu.row], NONE)
    for at in np.flatnonzero(gaps.next_row == NONE).tolist():
        mine = of_activity[(of_activity != NONE) & (trace.gpu.device == gaps.device[at])]
        if mine.size:
            launch[at] = mine[np.argmax(trace.start_ns[mine])]
    return launch


def _host_ends(tree: Tree, gaps: Gaps, launch: Int64) -> Int64:
    """Return until when each gap is the host's: to its end, where the next activity was launched in it."""
    if not len(gaps):
        return gaps.start_ns
    arrival = np.where(launch == NONE, UNKNOWN_NS, tree.trace.end_ns()[launch])
    arrival = np.where((gaps.next_row == NONE) & (launch != NONE), gaps.end_ns, arrival)
    in_time = arrival <= gaps.start_ns
    host_end: Int64 = np.where(in_time, gaps.start_ns, np.minimum(gaps.end_ns, arrival + ARRIVAL_NS))
    return host_end


def _beyond_host(tree: Tree, case: _Case) -> Int64:
    """Return the cause of what is not the host's: the device's, where the launch came in time.

    So do launches from before the recording: what runs before anything launched in it was queued.
    """
    gaps = case.gaps
    if not len(gaps):
        return gaps.device
    first = np.r_[True, np.diff(gaps.device) != 0]
    linked = np.where(case.launch == NONE, np.iinfo(np.int64).max, gaps.end_ns)
    earliest = np.minimum.reduceat(linked, np.flatnonzero(first))
    queued = gaps.end_ns < earliest[np.cumsum(first) - 1]
    outside = (gaps.next_row != NONE) & (tree.link[gaps.next_row] == Link.OUTSIDE_WINDOW)
    known = (case.launch != NONE) | (outside & queued & ~first & (len(tree.launches) > 0))
    return np.where(known, IdleCause.DEVICE, IdleCause.UNKNOWN).astype(np.int64)


def _chain(tree: Tree, host: Host, process: int, window: tuple[int, int]) -> Chain:
    trace = tree.trace
    launches = tree.launches[trace.process[tree.launches] == process]
    launches = launches[trace.start_ns[launches] != UNKNOWN_NS]
    threads = distinct(trace.thread[launches])
    held = {thread: host.held(thread, threads) for thread in threads.tolist()}
    return chain_of(trace, launches, held, window)


def _blamed(chain: Chain, trace: Trace, mine: Int64, case: _Case) -> _Pieces:
    """Partition the host's part of the gaps that a process ended."""
    parts = []
    threads = trace.thread[case.launch[mine]]
    for thread, held in chain.held.items():
        chosen = mine[threads == thread]
        launch, start, end = case.launch[chosen], case.gaps.start_ns[chosen], case.host_end_ns[chosen]
        last = case.gaps.next_row[chosen] == NONE
        launched = np.where(last, end, np.clip(trace.end_ns()[launch], start, end))
        of, span, begin, stop = intersect(start, launched, held.spans)
        parts.append(_Pieces.of(chosen[of], begin, stop, held.cause[span], held.spans.row[span]))
        of, _, begin, stop = intersect(start, launched, held.spans.gaps())
        parts.append(_Pieces.of(chosen[of], begin, stop, IdleCause.LAUNCH, launch[of]))
        parts.append(_Pieces.of(chosen, launched, end, IdleCause.LAUNCH, launch))
    pieces = _Pieces.joined(parts)
    for cause in _CARRIED:
        if cause in chain.causes:
            pieces = _carried(chain, cause, pieces, case)
    return pieces


def _carried(chain: Chain, cause: IdleCause, pieces: _Pieces, case: _Case) -> _Pieces:
    """Lay ordinary pieces to time that the cause took of the host before, while the GPU still had work."""
    own = pieces.cause == cause
    counted = np.flatnonzero(own | (pieces.cause == IdleCause.LAUNCH))
    lost_ns, sequence = _lost(chain, cause, pieces.pick(counted), case)
    share = np.zeros(len(pieces), dtype=np.int64)
    share[counted] = accounted(lost_ns, (pieces.end_ns - pieces.start_ns)[counted], sequence)
    cut = np.where(own, pieces.end_ns, np.minimum(pieces.start_ns + share, pieces.end_ns))
    blamed = np.where(own, pieces.row, _last_before(chain, cause, case.launch[pieces.gap], pieces))
    return _Pieces.joined(
        [
            _Pieces.of(pieces.gap, pieces.start_ns, cut, cause, blamed),
            _Pieces.of(pieces.gap, cut, pieces.end_ns, pieces.cause, pieces.row),
        ]
    )


def _lost(chain: Chain, cause: IdleCause, pieces: _Pieces, case: _Case) -> tuple[Int64, Int64]:
    """Return what the host had lost to a cause by the end of each piece, and the number of its sequence.

    A sequence ends where the host waited until the GPU had finished: what was lost before no longer counts.
    """
    gap, gaps = pieces.gap, case.gaps
    if not gap.size:
        return gap, gap
    spent = chain.spent(cause)
    at = np.where(gaps.next_row[gap] == NONE, spent.size - 1, chain.position(case.launch[gap]))
    lost = np.minimum(spent[at], chain.spent_until(cause, spent, pieces.end_ns))
    begins = np.r_[True, np.diff(gaps.device[gap]) != 0]
    since = np.zeros(gap.size, dtype=np.int64)
    if cause not in _WAITS:
        drained, waited_until = is_any(chain, gaps.start_ns[gap], *_WAITS)
        drained &= np.r_[True, np.diff(gap) != 0]
        since[drained] = chain.spent_until(cause, spent, waited_until[drained])
        begins |= drained
    sequence = np.cumsum(begins) - 1
    return lost - since[np.flatnonzero(begins)[sequence]], sequence


def _last_before(chain: Chain, cause: IdleCause, launch: Int64, pieces: _Pieces) -> Int64:
    """Return the row of the cause that was last before each piece ended."""
    spans = chain.all_of(cause)
    at = np.searchsorted(spans.start_ns, pieces.end_ns, "left") - 1
    found: Int64 = np.where(at >= 0, spans.row[np.maximum(at, 0)], launch)
    return found


def _idle(tree: Tree, case: _Case, pieces: _Pieces) -> Idle:
    trace, gaps = tree.trace, case.gaps
    of = case.launch[pieces.gap]
    known = of != NONE
    safe = np.where(known, of, 0)

    def column(values: NDArray[np.int32]) -> Int64:
        return np.where(known, values[safe], NONE).astype(np.int64) if len(trace) else of

    return Idle(
        device=gaps.device[pieces.gap],
        start_ns=pieces.start_ns,
        end_ns=pieces.end_ns,
        cause=pieces.cause.astype(np.int8),
        host_row=pieces.row,
        next_row=gaps.next_row[pieces.gap],
        thread=column(trace.thread),
        process=column(trace.process),
        engine=known & (tree.engine[safe] if len(tree.engine) else False),
        calls=tree.ownership.spans,
        window=gaps.window,
    )
