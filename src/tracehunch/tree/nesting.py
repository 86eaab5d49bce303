"""Which span lies directly inside which, from start and end alone.

Spans of one group (a thread) nest like brackets. The span around ``i`` is the last one before it, in order of
start, that has not ended when ``i`` starts and does not end before ``i`` does. That is the "previous greater
element" problem, solved here by pointer jumping: every span first points at its predecessor, and those that a
predecessor cannot hold follow that predecessor's own pointer, all at once. Whatever lies between a span and
its pointer ended too early for the span, hence too early for all that are refused by it: nothing is skipped.
The number of rounds grows with the logarithm of the number of siblings, and with depth only where a span
closes many levels at once; such rests are walked one by one, each level once.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int64

NONE: Final = -1
"""No row: no parent, no launch, no op."""

_ROUNDS: Final = 48


@dataclass(frozen=True, slots=True)
class Nesting:
    """``order`` sorts the given spans by (group, start); the other columns are positions in that order."""

    order: Int64
    parent: Int64  # NONE at the top
    crosses: NDArray[np.bool_]  # started inside another span and ended after it


def nest(
    group: Any,
    start_ns: Int64,
    end_ns: Int64,
    rank: Any,
    *,
    tolerance_ns: int = 0,
    counted: NDArray[np.bool_] | None = None,
) -> Nesting:
    """Find the span directly around each span.

    ``rank`` decides between spans of equal start and end: the lower one is outside. A span may end up to
    ``tolerance_ns`` after the one around it (stamps are rounded). A span that starts where another ends is
    beside it. ``crosses`` is told of spans that are ``counted`` (all if None) and cross another such.
    """
    order = _sorted(np.asarray(group, dtype=np.int64), start_ns, end_ns, np.asarray(rank))
    groups, start, end = np.asarray(group)[order], start_ns[order], end_ns[order]
    parent = np.arange(-1, order.size - 1, dtype=np.int64)
    parent[np.flatnonzero(groups[1:] != groups[:-1]) + 1] = NONE
    crosses = np.zeros(order.size, dtype=bool)
    strict = np.ones(order.size, dtype=bool) if counted is None else counted[order]
    active = np.flatnonzero(parent != NONE)
    held, begins, ends, held_ends = active - 1, start[active], end[active], end[active - 1]
    for _ in range(_ROUNDS):
        late = held_ends + tolerance_ns < ends
        across = np.flatnonzero(late & (held_ends > begins + tolerance_ns))  # few
        crosses[active[across[strict[held[across]]]]] = True
        refused = np.flatnonzero(late | (held_ends <= begins))
        active, held = active[refused], parent[held[refused]]
        parent[active] = held
        below = np.flatnonzero(held != NONE)
        if not below.size:
            break
        active, held, refused = active[below], held[below], refused[below]
        begins, ends, held_ends = begins[refused], ends[refused], end[held]
    else:
        _walk(active, parent, crosses, start=start, end=end, tolerance_ns=tolerance_ns)
    return Nesting(order, parent, crosses & strict)


def nearest(parent: Int64, wanted: NDArray[np.bool_]) -> Int64:
    """Return for each position the nearest at or above it that is ``wanted``; NONE where there is none."""
    here = np.arange(parent.size, dtype=np.int64)
    found = np.where(wanted, here, parent)
    open_ = np.flatnonzero(~wanted & (parent != NONE))
    while open_.size:
        above = found[open_]
        open_ = open_[~wanted[above]]
        found[open_] = found[found[open_]]
        open_ = open_[found[open_] != NONE]
    return found


def _sorted(group: Int64, start: Int64, end: Int64, rank: NDArray[Any]) -> Int64:
    """Order by (group, start, -end, rank, position). Equal starts are few: only they are sorted by all."""
    order = np.lexsort((start, group))
    same = np.flatnonzero((np.diff(start[order]) == 0) & (np.diff(group[order]) == 0))
    if same.size:
        tied = np.union1d(same, same + 1)
        rows = order[tied]
        order[tied] = rows[np.lexsort((rows, rank[rows], -end[rows], start[rows], group[rows]))]
    return order


def _walk(
    rest: Int64, parent: Int64, crosses: NDArray[np.bool_], *, start: Int64, end: Int64, tolerance_ns: int
) -> None:
    """Finish what pointer jumping left, one by one in order: a level once left is never looked at again."""
    up, starts, ends = parent.tolist(), start.tolist(), end.tolist()
    for i in rest.tolist():
        at = i - 1
        while at != NONE:
            late = ends[at] + tolerance_ns < ends[i]
            if ends[at] > starts[i] and not late:
                break
            if late and ends[at] > starts[i] + tolerance_ns:
                crosses[i] = True
            at = up[at]
        up[i] = parent[i] = at
