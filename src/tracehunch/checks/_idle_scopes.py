"""Which scopes findings on idle time go to."""

from typing import Final

import numpy as np

from tracehunch.checks._idle_pieces import Idle, IdleCause
from tracehunch.checks._once import once
from tracehunch.facts.intervals import Cover
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE

_HALF: Final = 0.5
_MOST: Final = 0.7
"""An annotation that holds so much of a cause's time stands for all of the step around it."""


def program_scopes(facts: Facts, idle: Idle, cause: IdleCause) -> list[ScopeFacts]:
    """Return the scopes that stand for the program as a whole, where a cause is spread over all of it.

    That is the one annotation that is in no other, if it holds most of the cause's time; else the steps; else
    all such annotations, if they do together; else the whole trace.
    """
    outer = outermost(facts)
    around = [scope for kind in ("step", "whole") for scope in facts.scopes if scope.scope.kind == kind][:1]
    total = sum(_total_us(idle, scope, cause) for scope in around)
    held = [_total_us(idle, scope, cause) for scope in outer]
    if outer and max(held) >= _MOST * total:
        return [outer[int(np.argmax(held))]]
    if sum(held) >= _MOST * total and around[0].scope.kind == "whole":
        return outer
    return around


def outermost(facts: Facts) -> list[ScopeFacts]:
    """Return the annotations of the user that are in no other one."""
    inside = _annotations_around(facts)
    return [
        scope for scope in facts.scopes if scope.scope.kind == "annotation" and not inside[scope.scope.name]
    ]


def directly_inside(facts: Facts, outer: ScopeFacts) -> list[ScopeFacts]:
    """Return the annotations inside a scope that are in no other one in between."""
    if outer.scope.kind != "annotation":
        return [scope for scope in outermost(facts) if scope is not outer]
    return [facts.scopes[number] for number in _inside_directly(facts).get(outer.scope.name, ())]


@once
def _inside_directly(facts: Facts) -> dict[str, list[int]]:
    """For each annotation of the user the scopes that are in it and in no other one in between."""
    around = _annotations_around(facts)
    found: dict[str, list[int]] = {}
    for number, scope in enumerate(facts.scopes):
        mine = around.get(scope.scope.name, frozenset())
        for name in mine:
            if mine <= around[name] | {name}:
                found.setdefault(name, []).append(number)
    return found


def most_specific(facts: Facts, idle: Idle, pieces: Int64) -> Int64:
    """Return for each piece the scope (index into ``facts.scopes``) that holds most of it; NONE if none does.

    The shortest annotation goes first, then the steps, then the whole.
    """
    found = np.full(pieces.size, NONE, dtype=np.int64)
    order = {"whole": 0, "step": 1, "annotation": 2}
    scopes = [n for n in _holding(facts, idle, pieces) if facts.scopes[n].scope.kind in order]
    scopes.sort(key=lambda n: (order[facts.scopes[n].scope.kind], -_mean_ns(facts.scopes[n], idle)))
    position = np.full(len(idle), NONE, dtype=np.int64)
    position[pieces] = np.arange(pieces.size)
    for number in scopes:
        near = idle.near(facts.scopes[number])
        near = near[position[near] != NONE]
        inside = idle.within_us(facts.scopes[number], near)
        found[position[near[inside >= _HALF * idle.length_us[near]]]] = number
    return found


def _holding(facts: Facts, idle: Idle, pieces: Int64) -> list[int]:
    """Find the scopes whose calls overlap pieces for long enough to hold half of one; few out of many."""
    if not pieces.size:
        return []
    calls, cover = idle.calls, Cover(idle.start_ns[pieces], idle.end_ns[pieces])
    until = np.r_[0, np.cumsum(cover.until(calls.end_ns) - cover.until(calls.start_ns))]
    first = np.array([scope.scope.first_call for scope in facts.scopes], dtype=np.int64)
    held = until[first + [len(scope.scope.calls) for scope in facts.scopes]] - until[first]
    least = _HALF * (idle.end_ns - idle.start_ns)[pieces].min()
    return np.flatnonzero(held >= least).tolist()


@once
def _annotations_around(facts: Facts) -> dict[str, frozenset[str]]:
    """For each annotation of the user the names of those that its calls are in."""
    tree = facts.tree
    spans = tree.ownership.spans
    names = {
        int(row): scope.scope.name
        for scope in facts.scopes
        if scope.scope.kind == "annotation"
        for row in spans.row[_calls(scope)].tolist()
    }
    is_call = np.zeros(len(tree.trace) + 1, dtype=bool)
    is_call[list(names)] = True
    found: dict[str, set[str]] = {name: set() for name in names.values()}
    rows = np.fromiter(names, dtype=np.int64, count=len(names))
    above = tree.parent[rows].astype(np.int64)
    while (alive := np.flatnonzero(above != NONE)).size:
        for at in alive[is_call[above[alive]]].tolist():
            found[names[int(rows[at])]].add(names[int(above[at])])
        above[alive] = tree.parent[above[alive]]
    return {name: frozenset(around - {name}) for name, around in found.items()}


def _total_us(idle: Idle, scope: ScopeFacts, cause: IdleCause) -> float:
    return float(idle.by_call_us(scope, cause).sum())


def _mean_ns(scope: ScopeFacts, idle: Idle) -> float:
    mine = _calls(scope)
    return float((idle.calls.end_ns[mine] - idle.calls.start_ns[mine]).mean())


def _calls(scope: ScopeFacts) -> slice:
    return slice(scope.scope.first_call, scope.scope.first_call + len(scope.scope.calls))
