"""Which rows a timeline shows: those of the first steps, as many as fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.trace.model import GPU_CATS, UNKNOWN_NS, Cat
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tracehunch.facts.model import Facts
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree
    from tracehunch.tree.model import Call, Scope

HOST: Final = (
    Cat.CPU_OP,
    Cat.USER_ANNOTATION,
    Cat.PYTHON_FUNCTION,
    Cat.RUNTIME,
    Cat.DRIVER,
    Cat.OVERHEAD,
    Cat.SYNC,
)


@dataclass(frozen=True, slots=True)
class Window:
    """Rows to show, ascending, with the span of time around them, and counts of what is left out."""

    rows: Int64
    start_ns: int
    end_ns: int
    what: str
    python_left_out: int = 0
    short_left_out: int = 0
    outside: int = 0


def window_of(facts: Facts, limit: int) -> Window | None:
    """Return the steps from the first on whose rows are at most `limit`, one step at least.

    Where too much is in them, Python frames are left out first, then the shortest events of the host.
    """
    tree = facts.tree
    drawn = _drawn(tree)
    if not drawn.size:
        return None
    scope = _steps(tree)
    calls = () if scope is None else tuple(sorted(scope.calls, key=lambda call: call.start_ns))
    if scope is None or not calls:
        return _fitted(tree, drawn, drawn, "the whole trace", limit)
    inside = [_of_calls(tree, drawn, calls[:1])]
    for n in range(2, len(calls) + 1):
        more = _of_calls(tree, drawn, calls[:n])
        if more.size > limit:
            break
        inside.append(more)
    n = len(inside)
    which = f"the first {n} of {len(calls)} calls" if n < len(calls) else plural(n, "call")
    return _fitted(tree, inside[-1], drawn, f"{which} of {scope.name}", limit)


def _steps(tree: Tree) -> Scope | None:
    """Return the profiler's steps, else the annotation that holds most of the time."""
    steps = [scope for scope in tree.scopes if scope.kind == "step"]
    notes = [scope for scope in tree.scopes if scope.kind == "annotation"]
    found = steps or sorted(notes, key=_held_ns, reverse=True)
    return found[0] if found else None


def _held_ns(scope: Scope) -> int:
    return sum(call.end_ns - call.start_ns for call in scope.calls)


def _drawn(tree: Tree) -> Int64:
    """Return the rows that can be drawn: on the host or a GPU, with a start and a duration."""
    trace = tree.trace
    rows = trace.rows(*HOST, *GPU_CATS)
    known = (trace.start_ns[rows] != UNKNOWN_NS) & (trace.dur_ns[rows] != UNKNOWN_NS)
    found: Int64 = rows[known]
    return found


def _of_calls(tree: Tree, drawn: Int64, calls: Sequence[Call]) -> Int64:
    """Return the host's rows that start within the calls, and the GPU's that they launched or that run."""
    trace = tree.trace
    start, end = calls[0].start_ns, max(call.end_ns for call in calls)
    within = (trace.start_ns >= start) & (trace.start_ns < end)
    on_gpu = np.isin(trace.cat, GPU_CATS)
    launch = tree.launch
    launched = on_gpu & (launch >= 0) & within[np.maximum(launch, 0)]
    running = on_gpu & (launch < 0) & within
    chosen: NDArray[np.bool_] = (within & ~on_gpu) | launched | running
    return drawn[chosen[drawn]]


def _fitted(tree: Tree, rows: Int64, drawn: Int64, what: str, limit: int) -> Window:
    trace = tree.trace
    outside = drawn.size - rows.size
    python = short = 0
    if rows.size > limit:
        frames = trace.cat[rows] == Cat.PYTHON_FUNCTION
        python, rows = int(frames.sum()), rows[~frames]
    if rows.size > limit:
        on_gpu = np.isin(trace.cat[rows], GPU_CATS)
        keep = np.argsort(np.where(on_gpu, -np.inf, -trace.dur_ns[rows]), kind="stable")[:limit]
        short, rows = rows.size - limit, rows[np.sort(keep)]
    ends = trace.end_ns()[rows]
    return Window(rows, int(trace.start_ns[rows].min()), int(ends.max()), what, python, short, outside)
