"""Columns -> facts per scope: the median over the calls, and how far they spread."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from tracehunch.facts.column import Bool, Column, Rows, Words
from tracehunch.facts.context import Context
from tracehunch.facts.model import Fact
from tracehunch.facts.vocabulary import KEYS
from tracehunch.trace.model import Float64, Int64

_WHOLE: Final = frozenset({"count", "bytes", "rate"})
"""Kinds of whole numbers."""

Number = int | float


def summarise(context: Context, columns: Iterable[Column], words: Iterable[Words]) -> list[dict[str, Fact]]:
    """Facts of each scope, in the order of the vocabulary."""
    return _in_order(context, columns, words, own=False)


def summarise_own(context: Context, columns: Iterable[Column]) -> list[dict[str, Fact]]:
    """Do the same for the work of the scope's own thread: the keys that depend on threads."""
    return _in_order(context, [column for column in columns if column.own is not None], (), own=True)


def _in_order(
    context: Context, columns: Iterable[Column], words: Iterable[Words], *, own: bool
) -> list[dict[str, Fact]]:
    found: list[dict[str, Fact]] = [{} for _ in context.scopes]
    for column in columns:
        values = column.own if own else column.values
        assert values is not None
        _fill(context, found, column, values, column.rows if not own else None)
    for text in words:
        for scope, value in text.values.items():
            found[scope][text.key] = Fact(text.key, value, KEYS[text.key].unit)
    order = {key: number for number, key in enumerate(KEYS)}
    return [dict(sorted(facts.items(), key=lambda fact: order[fact[0]])) for facts in found]


def _fill(
    context: Context,
    found: list[dict[str, Fact]],
    column: Column,
    values: Int64 | Float64,
    rows: Rows | None,
) -> None:
    key = KEYS[column.key]
    scale = _times if key.unit == "us" else _plain
    scope, middle, low, high = summaries(
        context.scope_of_call, values, column.known, whole=key.kind in _WHOLE
    )
    first = context.first[scope].tolist()
    for number, start, *three in zip(scope.tolist(), first, middle, low, high, strict=True):
        evidence = () if rows is None else tuple(rows(start).tolist())
        found[number][key.name] = Fact(
            key.name, scale(three[0]), key.unit, scale(three[1]), scale(three[2]), evidence
        )


def summaries(
    group: Int64, values: Int64 | Float64, known: Bool | None, *, whole: bool
) -> tuple[Int64, list[Number], list[Number], list[Number]]:
    """Median, lowest and highest of each group's known values; groups without any are left out.

    The median of ``whole`` numbers is the lower of the two in the middle, so that it occurs.
    """
    if known is not None:
        group, values = group[known], values[known]
    order = np.lexsort((values, group))
    group, ordered = group[order], values[order]
    first = np.flatnonzero(np.diff(group, prepend=-1))
    n = np.diff(np.append(first, group.size))
    lower, upper = ordered[first + (n - 1) // 2], ordered[first + n // 2]
    middle = lower if whole else np.where(lower == upper, lower, (lower + upper) / 2)
    return group[first], middle.tolist(), ordered[first].tolist(), ordered[first + n - 1].tolist()


def _times(ns: Number) -> float:
    return round(ns / 1000, 3)


def _plain(value: Number) -> Number:
    return value if isinstance(value, int) else round(value, 6)
