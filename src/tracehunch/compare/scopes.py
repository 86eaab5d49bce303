"""Which scope of one trace is compared with which of the other."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from tracehunch.compare.model import Matched, ScopePair
from tracehunch.errors import TracehunchError
from tracehunch.guess.scopes import near_names
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.facts.model import Facts, ScopeFacts
    from tracehunch.tree import Call

    Key = Callable[[ScopeFacts], object | None]

_NUMBERS: Final = re.compile(r"\b[a-z0-9]{30,}\b|\d+")
"""What differs in the names of the same compiled region of two runs: hashes, numbers."""


def match_scopes(
    before: Facts, after: Facts, given: Sequence[tuple[str, str]] = ()
) -> tuple[list[ScopePair], list[ScopeFacts], list[ScopeFacts]]:
    """Return the pairs, and the scopes of either side that have no counterpart.

    Scopes match by kind and name; ``given`` names pairs whatever they are called. Frameworks' scopes match
    without the numbers in their names, too. Where one annotation is left over on each side, in the same
    scope, the two are taken for the same one.

    Raises:
        TracehunchError: a scope is given that its trace does not have, or one twice.

    """
    _refuse_twice(given)
    matching = _Matching(list(before.scopes), list(after.scopes))
    for first, second in dict.fromkeys(given):
        matching.take(_named(first, before), _named(second, after), "given")
    matching.by(lambda scope: (scope.scope.kind, scope.scope.name))
    matching.by(_numberless)
    _by_position(matching, before, after)
    order = {id(scope): number for number, scope in enumerate(before.scopes)}
    pairs = sorted(matching.pairs, key=lambda pair: order[id(pair.before)])
    return pairs, matching.before, matching.after


def _refuse_twice(given: Sequence[tuple[str, str]]) -> None:
    for side, when in enumerate(("before", "after")):
        seen = Counter(pair[side] for pair in dict.fromkeys(given))
        if twice := [name for name, n in seen.items() if n > 1]:
            raise TracehunchError(
                f"the scope {twice[0]!r} {when} is given twice", todo="compare it with one scope at a time"
            )


class _Matching:
    """What was matched until now, and what is left of both sides."""

    def __init__(self, before: list[ScopeFacts], after: list[ScopeFacts]) -> None:
        self.before, self.after = before, after
        self.pairs: list[ScopePair] = []

    def take(self, first: ScopeFacts, second: ScopeFacts, how: Matched) -> None:
        """Match two scopes."""
        self.pairs.append(ScopePair(first, second, how))
        self.before = [scope for scope in self.before if scope is not first]
        self.after = [scope for scope in self.after if scope is not second]

    def by(self, key: Key) -> None:
        """Match scopes that are the only ones of their key on both sides; a key of None matches nothing."""
        first, second = _unique(self.before, key), _unique(self.after, key)
        for one in [name for name in first if name in second]:
            self.take(first[one], second[one], "name")


def _unique(scopes: Sequence[ScopeFacts], key: Key) -> dict[object, ScopeFacts]:
    keys = [(key(scope), scope) for scope in scopes]
    seen = Counter(one for one, _ in keys)
    return {one: scope for one, scope in keys if one is not None and seen[one] == 1}


def _numberless(scope: ScopeFacts) -> tuple[str, str] | None:
    if scope.scope.kind != "framework":
        return None
    return scope.scope.kind, _NUMBERS.sub("#", scope.scope.name)


def _by_position(matching: _Matching, before: Facts, after: Facts) -> None:
    """Match annotations that are the only ones left over inside the same scope."""
    while True:
        first = _inside(matching.before, before, matching.pairs, "before")
        second = _inside(matching.after, after, matching.pairs, "after")
        lone = [
            (first[parent][0], second[parent][0])
            for parent in first
            if len(first[parent]) == 1 and len(second.get(parent, ())) == 1
        ]
        if not lone:
            return
        for one, other in lone:
            matching.take(one, other, "position")


def _inside(
    left: Sequence[ScopeFacts], facts: Facts, pairs: Sequence[ScopePair], side: str
) -> dict[int, list[ScopeFacts]]:
    """Group annotations left over by the matched scope (a number of ``pairs``) that they run in.

    What runs inside another that is left over waits until that one is matched.
    """
    tree = facts.tree
    numbers = {
        call.row: number
        for number, pair in enumerate(pairs)
        if getattr(pair, side).scope.kind == "annotation"
        for call in _some_calls(getattr(pair, side))
    }
    waiting = {call.row for scope in left if scope.scope.kind == "annotation" for call in _some_calls(scope)}
    found: dict[int, list[ScopeFacts]] = {}
    for scope in left:
        if scope.scope.kind != "annotation":
            continue
        around = tree.ancestors(scope.scope.calls[0].row)
        place = next((row for row in around if row in numbers or row in waiting), NONE)
        if place not in waiting:
            found.setdefault(numbers.get(place, NONE), []).append(scope)
    return found


def _some_calls(scope: ScopeFacts) -> Sequence[Call]:
    return scope.scope.calls[:1000]


def _named(name: str, facts: Facts) -> ScopeFacts:
    found = facts.scope(name)
    if found is None:
        names = [scope.scope.name for scope in facts.scopes]
        near = near_names(name, names, 1)
        there = [scope.scope.name for scope in facts.scopes if scope.scope.kind != "framework"][:8]
        todo = f"did you mean {near[0]}?" if near else f"there are {', '.join(there)}"
        raise TracehunchError(f"{facts.tree.trace.label} has no scope {name!r}", todo=todo)
    return found
