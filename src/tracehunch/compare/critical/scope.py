"""Which call of which scope to take apart, and what of the trace around it matters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tracehunch.compare.critical.window import Window
from tracehunch.errors import TracehunchError
from tracehunch.tree import NONE, Call, Scope, Tree
from tracehunch.tree.names import STEP_PREFIX

if TYPE_CHECKING:
    from collections.abc import Sequence

_AROUND: Final = 2
"""Steps before and after that are simulated with a step: what they leave in the queue bounds it, too."""

Chosen = Literal["median", "named", "only", "whole"]


@dataclass(frozen=True, slots=True)
class Target:
    """A call, and the window to build for it.

    What the path covers was done or launched by the host from ``begin_ns`` to before ``next_ns`` (None: no
    limit, to the end of its own work).
    """

    scope: Scope
    call: Call
    chosen: Chosen
    name: str
    window: Window
    begin_ns: int
    end_ns: int
    next_ns: int | None


def target_of(tree: Tree, name: str | None = None) -> Target:
    """Choose the call: a named one, the step (or call) of median duration, else the whole trace.

    Raises:
        TracehunchError: the trace has no such scope, or no event with a time.

    """
    if tree.window.end_ns <= tree.window.start_ns:
        todo = "record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
        raise TracehunchError("no critical path", "the trace has no work with a time", todo)
    scope, index, chosen = _chosen(tree, name)
    if index is None:
        return _whole(tree, scope)
    call = scope.calls[index]
    near = _near(tree, scope.calls, index) if scope.kind == "step" else [index]
    calls = [scope.calls[at] for at in near]
    following = near[near.index(index) + 1 :]
    moments = [moment for one in calls for moment in (one.start_ns, one.end_ns)]
    process = int(tree.trace.process[call.row])
    window = Window(process, call.thread, moments[0], moments[-1], tuple(moments))
    later = scope.calls[following[0]].start_ns if following else None
    return Target(
        scope, call, chosen, tree.trace.name_of(call.row), window, call.start_ns, call.end_ns, later
    )


def _chosen(tree: Tree, name: str | None) -> tuple[Scope, int | None, Chosen]:
    named = _named_step(tree, name)
    if named is not None:
        return named
    wanted = [
        scope
        for scope in tree.scopes
        if len(scope.calls) and (scope.name == name if name else scope.kind in ("step", "whole"))
    ]
    if not wanted:
        raise TracehunchError(f"no scope {name!r}", "the trace has none of that name", "see --all-scopes")
    scope = wanted[0]
    if scope.kind == "whole":
        return scope, None, "whole"
    length = [call.end_ns - call.start_ns for call in scope.calls]
    works = [at for at, call in enumerate(scope.calls) if call.launches.size or call.ops.size]
    order = sorted(works or range(len(length)), key=lambda at: (length[at], at))
    return scope, order[(len(order) - 1) // 2], "median" if len(order) > 1 else "only"


def _named_step(tree: Tree, name: str | None) -> tuple[Scope, int, Chosen] | None:
    if name is None or not name.startswith(STEP_PREFIX):
        return None
    for scope in tree.scopes:
        for at, call in enumerate(scope.calls if scope.kind == "step" else ()):
            if tree.trace.name_of(call.row) == name:
                return scope, at, "named"
    return None


def _near(tree: Tree, calls: Sequence[Call], index: int) -> list[int]:
    """Find the steps around one that follow each other on its thread while the profiler was on."""
    longest = max(call.end_ns - call.start_ns for call in calls)

    def follows(one: int, other: int) -> bool:
        left, right = calls[one], calls[other]
        apart = right.start_ns - left.end_ns
        off = any(start < right.start_ns and end > left.end_ns for start, end in tree.window.gaps)
        return left.thread == right.thread and 0 <= apart < longest and not off

    first = last = index
    while first > max(0, index - _AROUND) and follows(first - 1, first):
        first -= 1
    while last < min(len(calls) - 1, index + _AROUND) and follows(last, last + 1):
        last += 1
    return list(range(first, last + 1))


def _whole(tree: Tree, scope: Scope) -> Target:
    trace, window = tree.trace, tree.window
    thread = _main_thread(tree)
    process = int(trace.process[np.flatnonzero(trace.thread == thread)[0]])
    made = Window(process, thread, window.start_ns, window.end_ns, ())
    return Target(scope, scope.calls[0], "whole", scope.name, made, window.start_ns, window.end_ns, None)


def _main_thread(tree: Tree) -> int:
    """Thread of most ops that are not autograd's; else of most launches; else of any row."""
    trace = tree.trace
    own = tree.ops[~tree.engine[tree.ops]] if len(tree.engine) else tree.ops
    rows = next(rows for rows in (own, tree.ops, tree.launches, np.arange(len(trace))) if rows.size)
    return int(np.bincount(trace.thread[rows]).argmax())


__all__ = ["NONE", "Target", "target_of"]
