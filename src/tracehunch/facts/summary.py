"""Columns -> facts per scope: the median over the calls, and how far they spread."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from tracehunch.facts.column import Bool, Column, Words
from tracehunch.facts.context import Context
from tracehunch.facts.model import Fact
from tracehunch.facts.vocabulary import KEYS
from tracehunch.trace.model import Float64, Int64
from tracehunch.tree.keys import sorted_within

_WHOLE: Final = frozenset({"count", "bytes", "rate"})
"""Kinds of whole numbers."""
_ORDER: Final = {key: number for number, key in enumerate(KEYS)}


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
    entries: list[Column | Words] = [*columns, *words]
    for entry in sorted(entries, key=lambda entry: _ORDER[entry.key]):
        if isinstance(entry, Column):
            _fill(context, found, entry, own=own)
        else:
            for scope, value in entry.values.items():
                found[scope][entry.key] = Fact(entry.key, value, KEYS[entry.key].unit)
    return found


def _fill(context: Context, found: list[dict[str, Fact]], column: Column, *, own: bool) -> None:
    key, values = KEYS[column.key], column.own if own else column.values
    assert values is not None
    scale = _microseconds if key.unit == "us" else _plain
    scope, *three = summaries(context.scope_of_call, values, column.known, whole=key.kind in _WHOLE)
    told = None if own else column.rows
    evidence = [()] * scope.size if told is None else told(context.first[scope])
    for number, middle, low, high, rows in zip(scope.tolist(), *map(scale, three), evidence, strict=True):
        found[number][key.name] = Fact(key.name, middle, key.unit, low, high, rows)


def summaries(
    group: Int64, values: Int64 | Float64, known: Bool | None, *, whole: bool
) -> tuple[Int64, Int64 | Float64, Int64 | Float64, Int64 | Float64]:
    """Median, lowest and highest of each group's known values; groups without any are left out.

    Groups ascend. The median of ``whole`` numbers is the lower of the two in the middle, so that it occurs.
    """
    if known is not None:
        group, values = group[known], values[known]
    ordered = sorted_within(group, values)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    n = np.diff(np.append(first, group.size))
    lower, upper = ordered[first + (n - 1) // 2], ordered[first + n // 2]
    middle = lower if whole else np.where(lower == upper, lower, (lower + upper) / 2)
    return group[first], middle, ordered[first], ordered[first + n - 1]


def _microseconds(ns: Int64 | Float64) -> list[float]:
    found: list[float] = (ns / 1000).tolist()
    for at in np.flatnonzero(ns % 1).tolist():  # between two whole numbers
        found[at] = round(found[at], 3)
    return found


def _plain(values: Int64 | Float64) -> list[int] | list[float]:
    found: list[int] | list[float] = values.tolist()
    is_whole = np.issubdtype(values.dtype, np.integer)
    return found if is_whole else [round(value, 6) for value in found]
