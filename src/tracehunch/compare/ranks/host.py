"""What the host of one rank did: its own time by op, and by step the time that it was held up by the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.facts.counts import waits_of
from tracehunch.trace.model import UNKNOWN_NS, Cat
from tracehunch.tree import NONE, work_of
from tracehunch.units import NAME_LIMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.facts.model import Facts
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree

_STEP: Final = "ProfilerStep"
_MOST_OPS: Final = 300
_HELD_NS: Final = 500_000
"""What no launch lasts that is not held up: by a full queue, or a copy that waits for what is before it."""
_HOST: Final = (Cat.CPU_OP, Cat.USER_ANNOTATION, Cat.RUNTIME, Cat.DRIVER)


def waiting_rows_of(tree: Tree) -> Int64:
    """Return the calls in which the host was held up by the GPU."""
    launches = tree.launches
    held = launches[tree.trace.dur_ns[launches] > _HELD_NS]
    return np.union1d(waits_of(tree), held)


def held_ns(tree: Tree) -> Int64:
    """Return for each call of each scope how long its thread, and autograd for it, was held up by the GPU."""
    trace, rows = tree.trace, waiting_rows_of(tree)
    lengths = trace.dur_ns[rows]
    layout = tree.ownership.layout(work_of(trace, rows, tree.engine))
    total: Int64 = layout.sums(np.where(lengths == UNKNOWN_NS, 0, lengths))[0]
    return total


def host_time_us_by_op(facts: Facts) -> Mapping[str, float]:
    """Return the host's time by op or annotation, each without what lies inside it, the longest first.

    Calls of the driver count for the op that made them, without those in which the GPU held the host up.
    """
    trace = facts.tree.trace
    _, op_row, time_ns = own_times(facts.tree)
    time = np.zeros(len(trace.names), dtype=np.float64)
    np.add.at(time, trace.name[op_row], time_ns)
    total: dict[str, float] = {}
    for i in np.flatnonzero(time > 0).tolist():
        name = trace.names[i][:NAME_LIMIT]
        name = _STEP if name.startswith(_STEP) else name  # all steps together
        total[name] = total.get(name, 0.0) + float(time[i])
    longest = sorted(total.items(), key=lambda item: (-item[1], item[0]))[:_MOST_OPS]
    return {name: round(time_ns / 1e3, 3) for name, time_ns in longest}


def own_times(tree: Tree) -> tuple[Int64, Int64, Int64]:
    """Return rows of the host, of each the op or annotation it counts for, and its time without children."""
    trace = tree.trace
    rows = trace.rows(*_HOST)
    rows = rows[trace.dur_ns[rows] != UNKNOWN_NS].astype(np.int64)
    own = np.zeros(len(trace) + 1, dtype=np.int64)  # one more, for NONE
    own[rows] = trace.dur_ns[rows]
    np.subtract.at(own, tree.parent[rows], trace.dur_ns[rows])
    own[waiting_rows_of(tree)] = 0
    calls = np.isin(trace.cat[rows], (Cat.RUNTIME, Cat.DRIVER))
    place = np.where(calls & (tree.op[rows] != NONE), tree.op[rows], rows)
    kept = ~calls | (tree.op[rows] != NONE)
    return rows[kept], place[kept], np.maximum(own[rows[kept]], 0)
