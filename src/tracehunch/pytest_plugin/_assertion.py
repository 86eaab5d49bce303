"""A broken assertion about a fact, explained: what was expected and seen, why, and what it is made of."""

from __future__ import annotations

import operator
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, cast

from tracehunch.guess.model import Claim, Guess, Relation
from tracehunch.judge import judge
from tracehunch.judge.explain import OTHER
from tracehunch.pytest_plugin._values import TYPES, FactValue, plain
from tracehunch.report.kernel_rows import identity_text
from tracehunch.report.verdict_text import explained_text, surprise_text, value_text
from tracehunch.trace.model import Cat
from tracehunch.units import count, elide, printable, time_column

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tracehunch.facts.model import Fact
    from tracehunch.pytest_plugin._values import Origin
    from tracehunch.tree import Tree
    from tracehunch.verdict import Surprise

_HOLDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda one, several: one in several,
    "not in": lambda one, several: one not in several,
}
_FLIPPED: Final = {"==": "==", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
_LINES: Final = 8  # pytest cuts a longer explanation, unless it runs with -vv
_CHARACTERS: Final = 600  # and one with more characters
_WIDTH: Final = 96
_OP_WIDTH: Final = 40


def explained(op: str, left: object, right: object, *, verbosity: int) -> list[str] | None:
    """Return the lines that pytest shows for ``left op right``, one of them a fact; None if it has no more.

    pytest asks about all parts of ``assert a == 5 and b == 0``: what holds is not explained.
    """
    if op not in _HOLDS:
        return None
    if _HOLDS[op](left, right):
        return [f"{plain(left)!r} {op} {plain(right)!r}"]
    fact = cast("FactValue", left if isinstance(left, TYPES) else right)
    other = plain(right if isinstance(left, TYPES) else left)
    origin = fact.origin
    name = f"calls of {origin.key}" if origin.is_op else origin.key
    lines = [f"{plain(left)!r} {op} {plain(right)!r}  ({name} in {printable(origin.scope.scope.name)})"]
    relation = (op if isinstance(left, TYPES) else _FLIPPED.get(op)) if op in _FLIPPED else None
    lines += _verdict(origin, relation, other)
    lines += _made_of(origin)
    return lines if verbosity > 1 else _fitting(lines)


def _verdict(origin: Origin, relation: str | None, expected: object) -> list[str]:
    """Say what was guessed and seen, and the findings that explain it."""
    if relation is None or origin.is_op or not isinstance(expected, int | float | str | tuple):
        return [*_causes(origin, OTHER.get(origin.key, frozenset())), *_spread(origin)]
    name = origin.scope.scope.name
    claim = Claim(origin.key, cast("Relation", relation), expected, name, "user", unit=origin.unit)
    verdict = judge([Guess((claim,))], origin.look.facts, origin.look.checked)
    lines = [line for one in verdict.surprises for line in _surprise(one, origin)]
    return lines + _spread(origin)


def _surprise(surprise: Surprise, origin: Origin) -> list[str]:
    told = f"{surprise_text(surprise).replace(' (user)', '')} per call; {explained_text(surprise)}"
    return [told, *_causes(origin, surprise.explained_by)]


def _causes(origin: Origin, ids: Collection[str]) -> list[str]:
    """Return the findings that have one of these ids, in a line each: those of the value's scope first."""
    name = origin.scope.scope.name
    found = [one for one in origin.look.checked.findings if one.id in ids]
    return [f"{one.id}: {printable(one.summary)}" for one in sorted(found, key=lambda one: one.scope != name)]


def _spread(origin: Origin) -> list[str]:
    fact = origin.scope.facts.get(origin.key)
    if fact is None or fact.low is None or fact.high is None or fact.low == fact.high:
        return []
    return [f"calls differ: {value_text(fact.low, fact.unit)} to {value_text(fact.high, fact.unit)}"]


def _made_of(origin: Origin) -> list[str]:
    """List what a value was counted from, in its scope's first call."""
    if origin.is_op:
        return list(_chains(origin))
    fact = origin.scope.facts.get(origin.key)
    if fact is None:
        return []
    return list(_callers(origin)) if origin.key == "leaf_ops" else _activities(origin, fact)


def _activities(origin: Origin, fact: Fact) -> list[str]:
    """Return ``1x  127.6 us  aten::masked_fill  memcpy ...``, longest first."""
    rows = set(fact.rows)
    uses = [use for use in origin.scope.kernels if not rows.isdisjoint(use.rows)]
    times = time_column([use.gpu_time_us for use in uses])
    return [
        f"{count(use.per_call)}x  {time:>10}  {elide(printable(use.op or '(no op)'), _OP_WIDTH)}"
        f"  {identity_text(use.identity)}"
        for use, time in zip(uses, times, strict=True)
    ]


def _callers(origin: Origin) -> Iterator[str]:
    """Yield ``4x  in aten::contiguous``: the leaf ops inside (or being) each op that the program called."""
    tree = origin.look.facts.tree
    leaves = [row for row in _ops(origin) if tree.n_children[row] == 0]
    called = Counter(tree.trace.name_of(_chain(row, tree)[-1]) for row in leaves)
    for name, n in called.most_common():
        yield f"{n}x  in {elide(printable(name), _OP_WIDTH)}"


def _chains(origin: Origin) -> Iterator[str]:
    """Yield ``2x  aten::contiguous > aten::clone > aten::copy_``: an op's calls by what calls it."""
    tree = origin.look.facts.tree
    chains = (_chain(row, tree) for row in _ops(origin) if tree.trace.name_of(row) == origin.key)
    paths = Counter(" > ".join(printable(tree.trace.name_of(row)) for row in chain[::-1]) for chain in chains)
    for path, n in paths.most_common():
        yield f"{n}x  {elide(path, _WIDTH)}"


def _ops(origin: Origin) -> list[int]:
    """Return the ops of the scope's first call."""
    calls = origin.scope.scope.calls
    return calls[0].ops.tolist() if len(calls) else []


def _chain(row: int, tree: Tree) -> list[int]:
    """Return an op and those around it, innermost first."""
    return [row, *(one for one in tree.ancestors(row) if tree.trace.cat[one] == Cat.CPU_OP)]


def _fitting(lines: list[str]) -> list[str]:
    """Keep as many lines as pytest shows; the rest stands in the test's report."""
    kept: list[str] = []
    for line in lines:
        room = _CHARACTERS - sum(map(len, kept))
        if room < len(line) or (len(kept) == _LINES - 1 and len(lines) > _LINES):
            return [*kept, f"... {len(lines) - len(kept)} more below"]
        kept.append(line)
    return kept
