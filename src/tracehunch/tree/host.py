"""How ops, annotations and runtime calls lie inside each other on their threads."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import UNKNOWN_NS, Cat, Int32, Int64, Trace
from tracehunch.tree.names import ENGINE_PREFIX, is_step, names_that
from tracehunch.tree.nesting import NONE, nearest, nest

_NESTED: Final = (Cat.USER_ANNOTATION, Cat.CPU_OP, Cat.RUNTIME, Cat.DRIVER)
"""Outermost first among spans of equal start and end."""

_COARSE_NS: Final = 1_000
_ROUNDED_NS: Final = 100
_SLACK_NS: Final = 2  # stamps are rounded to nanoseconds, start and duration each


@dataclass(frozen=True, slots=True)
class Host:
    """``parent``, ``op`` and ``n_children`` per row of the trace; ``rows`` sorted by (thread, start)."""

    rows: Int64
    position: Int64  # of the parent within rows
    parent: Int32
    op: Int32
    n_children: Int32
    steps: NDArray[np.bool_]
    ops: NDArray[np.bool_]
    engine: NDArray[np.bool_]  # rows in which autograd's engine runs one node
    crossing: Int64  # rows that started inside another and ended after it
    resolution_ns: int  # of the clock: 1, or 1000 where stamps are rounded to the microsecond or near it

    def nearest(self, wanted: NDArray[np.bool_], n: int) -> Int32:
        """For each host row (of ``n`` rows in all) the nearest row at or above it that is ``wanted``."""
        return _spread(self.rows, nearest(self.position, wanted[self.rows]), n)


def nest_host(trace: Trace) -> Host:
    """Nest the host's rows; Python frames are no part of it (``source`` and ``modules`` nest theirs).

    A row may end up to 2 ns after the one around it, for start and duration are rounded to the nanosecond; up
    to 1 us where stamps are whole microseconds. Beyond that it crosses, and so does an op that outlasts its
    step. Other annotations may cross without being told: those of torch.compile's phases do.
    """
    n = len(trace)
    steps = is_step(trace)
    ops = (trace.cat == Cat.CPU_OP) & ~steps
    rows = trace.rows(*_NESTED)
    rows = rows[trace.start_ns[rows] != UNKNOWN_NS]
    start = trace.start_ns[rows]
    resolution = clock_step(trace, rows)
    rank = np.where(steps[rows], Cat.USER_ANNOTATION, trace.cat[rows])
    rank = np.where(rank == Cat.USER_ANNOTATION, 0, rank)
    tolerance = resolution if resolution >= _COARSE_NS else _SLACK_NS
    counted = (rank > 0) | steps[rows]
    found = nest(
        trace.thread[rows], start, trace.end_ns()[rows], rank, tolerance_ns=tolerance, counted=counted
    )
    ordered = rows[found.order]
    is_op = ops[ordered]
    op = nearest(found.parent, is_op)
    op_above = np.where(found.parent == NONE, NONE, op[found.parent])
    holders = op_above[is_op & (op_above != NONE)]
    n_children = np.zeros(n, dtype=np.int32)
    n_children[ordered] = np.bincount(holders, minlength=ordered.size)
    return Host(
        rows=ordered,
        position=found.parent,
        parent=_spread(ordered, found.parent, n),
        op=_spread(ordered, op, n),
        n_children=n_children,
        steps=steps,
        ops=ops,
        engine=ops & names_that(trace, lambda name: name.startswith(ENGINE_PREFIX))[trace.name],
        crossing=ordered[found.crosses],
        resolution_ns=resolution,
    )


def clock_step(trace: Trace, rows: Int64) -> int:
    """1, or 1000 where starts are rounded: whole microseconds, or absolute ones once held in float64."""
    starts = trace.start_ns[rows]
    return _COARSE_NS if rows.size and not (starts % _ROUNDED_NS).any() else 1


def _spread(rows: Int64, found: Int64, n: int) -> Int32:
    """Positions within ``rows`` as rows of the trace, one entry per row of the trace."""
    column = np.full(n, NONE, dtype=np.int32)
    column[rows] = np.where(found == NONE, NONE, rows[found])
    return column
