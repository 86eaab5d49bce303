"""Times of calls that no fact of a scope has: from one call to the next, and outside PyTorch.

Where the host runs ahead of the GPU, neither a scope's wall time nor its GPU time says how often a step comes
round: copies may run beside the kernels of another step. The moments at which calls are over do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.model import Spread, TimeChange
from tracehunch.compare.noise import differ
from tracehunch.compare.placement import gpu_known
from tracehunch.facts.intervals import Cover
from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.placement import Calls
    from tracehunch.facts.model import Facts
    from tracehunch.trace.model import Int64

_FEWEST: Final = 2  # intervals
_MANY: Final = 8
_UNSURE_US: Final = 100.0
"""Between two calls the profiler does its own work, by which two recordings of one program on an H200
differed by 77 us: of fewer than ``_MANY`` intervals such a difference says nothing."""


def periods(facts: Facts, calls: Calls) -> list[Spread | None]:
    """Return per scope the time from the end of a call to that of the next; None where it cannot be told.

    A call is over when its thread has left it and the last GPU activity that it launched has ended.
    """
    over, known = _over(facts, calls), gpu_known(facts, calls)
    mine = (np.flatnonzero(calls.scope == scope) for scope in range(calls.n_scopes))
    return [_period(facts, calls, one, over) if known[one].all() else None for one in mine]


def outsides(facts: Facts, calls: Calls) -> list[Spread | None]:
    """Return per scope the time of a call in which its thread was in no op and no runtime call."""
    trace, spans = facts.tree.trace, calls.ownership.spans
    rows = np.concatenate([facts.tree.ops, trace.rows(*LAUNCH_CATS)])
    rows = rows[trace.start_ns[rows] != UNKNOWN_NS]
    start, end, thread = trace.start_ns[rows], trace.end_ns()[rows], trace.thread[rows]
    free = spans.end_ns - spans.start_ns
    for number in np.unique(spans.thread).tolist():
        mine, inside = thread == number, spans.thread == number
        cover = Cover(start[mine], end[mine])
        free[inside] -= cover.until(spans.end_ns[inside]) - cover.until(spans.start_ns[inside])
    known = (spans.thread != NONE) & (_gaps(facts, spans.start_ns, spans.end_ns) == 0)
    return [_spread(free[(calls.scope == scope) & known]) for scope in range(calls.n_scopes)]


def compare_times(before: Sequence[Spread | None], after: Sequence[Spread | None]) -> list[TimeChange | None]:
    """Hold such times of two traces against each other, scope by scope."""
    return [
        None if one is None or other is None else _compared(one, other)
        for one, other in zip(before, after, strict=True)
    ]


def _compared(before: Spread, after: Spread) -> TimeChange:
    unsure = min(before.calls, after.calls) < _MANY and abs(after.value - before.value) < _UNSURE_US
    if unsure or not differ(before, after, on_gpu=False):
        return TimeChange(before, after, "same" if before.value == after.value else "noise")
    return TimeChange(before, after, "more" if after.value > before.value else "less")


def _over(facts: Facts, calls: Calls) -> Int64:
    """Per call the moment at which it is over."""
    trace, pairs = facts.tree.trace, calls.ownership.gpu.pairs
    row = trace.gpu.row.astype(np.int64)
    end = trace.end_ns()[row][pairs.item]
    over = calls.ownership.spans.end_ns.copy()
    np.maximum.at(over, pairs.call, np.where(trace.start_ns[row][pairs.item] == UNKNOWN_NS, 0, end))
    return over


def _period(facts: Facts, calls: Calls, mine: Int64, over: Int64) -> Spread | None:
    spans = calls.ownership.spans
    mine = mine[np.argsort(spans.start_ns[mine], kind="stable")]
    threads = np.unique(spans.thread[mine])
    if mine.size <= _FEWEST or threads.size != 1 or threads[0] == NONE:
        return None
    moments = over[mine]
    lengths = np.diff(moments)
    kept = (_gaps(facts, moments[:-1], moments[1:]) == 0) & (lengths >= 0)
    return _spread(lengths[kept]) if kept.sum() >= _FEWEST else None


def _gaps(facts: Facts, start_ns: Int64, end_ns: Int64) -> Int64:
    """Time between two moments in which nothing was recorded."""
    return facts.tree.window.unrecorded_ns(start_ns, end_ns)


def _spread(lengths_ns: Int64) -> Spread | None:
    if not lengths_ns.size:
        return None
    low, middle, high = (
        round(float(one) / 1e3, 3) for one in (lengths_ns.min(), np.median(lengths_ns), lengths_ns.max())
    )
    return Spread(middle, low, high, lengths_ns.size)
