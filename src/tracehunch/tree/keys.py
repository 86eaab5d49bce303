"""Columns of keys: several as one, numbered, sorted, grouped; quicker than numpy's own ways for many rows."""

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int64
from tracehunch.tree.timeline import expand

_MOST: Final = 2**62
_DENSE: Final = 16
"""Up to so many possible keys for each entry a table takes less time than sorting."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """The distinct keys of a column, ascending; where each comes first; which of them each entry has."""

    keys: Int64
    first: Int64
    number: Int64


@dataclass(frozen=True, slots=True)
class Lookup:
    """A column of keys, sorted: who has a few of them is found without a look at all the others."""

    keys: Int64
    position: Int64  # of each key in the column

    @classmethod
    def of(cls, keys: Any) -> Self:
        """Sort a column."""
        column = np.asarray(keys, dtype=np.int64)
        order = stable_order(column)
        return cls(column[order], order)

    def having(self, keys: Any) -> Int64:
        """Return the positions, ascending, of all that have one of some keys."""
        wanted = distinct(keys)
        slices = np.searchsorted(self.keys, wanted), np.searchsorted(self.keys, wanted, "right")
        return np.sort(self.position[expand(*slices)[1]])


def packed(*columns: Any) -> Int64:
    """Return one number per entry of the columns: alike, and in the order, in which the entries are."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    room = 1
    for column in columns if found.size else ():
        values = np.asarray(column, dtype=np.int64)
        low, width = _range(values)
        if room * width > _MOST:
            found, values = numbered(found).number, numbered(values).number
            (_, room), (low, width) = _range(found), _range(values)
        found = found * width + (values - low)
        room *= width
    return found


def numbered(keys: NDArray[np.signedinteger[Any]]) -> Numbered:
    """Give each distinct key of a column a number, in their order."""
    low, width = _range(keys) if keys.size else (0, 1)
    if width > _DENSE * keys.size:
        return Numbered(*np.unique(keys, return_index=True, return_inverse=True))
    first = np.full(width, keys.size, dtype=np.int64)
    first[keys[::-1] - low] = np.arange(keys.size)[::-1]
    there = first < keys.size
    number = np.cumsum(there) - 1
    return Numbered(np.flatnonzero(there) + low, first[there], number[keys - low])


def sums_by(keys: Int64, weights: Any) -> tuple[Int64, NDArray[np.float64]]:
    """Return the distinct keys, ascending, and the sum of the weights that each has."""
    low, width = _range(keys) if keys.size else (0, 1)
    if width > _DENSE * keys.size:
        found = numbered(keys)
        return found.keys, np.bincount(found.number, weights=weights).astype(np.float64)
    there = np.flatnonzero(np.bincount(keys - low))
    return there + low, np.bincount(keys - low, weights=weights)[there].astype(np.float64)


def distinct(values: Any) -> Int64:
    """Return the distinct values, ascending: ``np.unique`` makes a hash table, which is slow for many."""
    ordered = np.sort(np.asarray(values, dtype=np.int64))
    found: Int64 = ordered[np.diff(ordered, prepend=ordered[:1] - 1) != 0]
    return found


def is_among(values: Int64, ascending: Int64) -> NDArray[np.bool_]:
    """Tell which values are among some that ascend: few in many, without a look at all of them."""
    if not ascending.size:
        return np.zeros(values.size, dtype=bool)
    at = np.minimum(np.searchsorted(ascending, values), ascending.size - 1)
    found: NDArray[np.bool_] = ascending[at] == values
    return found


def stable_order(keys: NDArray[np.signedinteger[Any]]) -> Int64:
    """Return what sorts a column and leaves entries that are alike in their order."""
    low, width = _range(keys) if keys.size else (0, 1)
    few = width <= np.iinfo(np.uint16).max  # then numpy sorts digit by digit
    return np.argsort((keys - low).astype(np.uint16) if few else keys, kind="stable")


def groups_of(keys: Int64) -> list[Int64]:
    """Return the positions of each distinct key, ascending, in the order of the keys."""
    order = stable_order(keys)
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1) if order.size else []


def sorted_within(group: Int64, values: Any) -> Any:
    """Return values by group, ascending within each."""
    if values.size and np.issubdtype(values.dtype, np.integer):
        low, width = _range(values)
        if (int(group.max()) + 1) * width <= _MOST:
            return np.sort(group * width + (values - low)) % width + low
    return values[np.lexsort((values, group))]


def largest(values: Any, most: int) -> Int64:
    """Return the positions of the largest values, largest first; of those that are alike the first ones."""
    chosen = np.arange(len(values))
    if 0 < most < chosen.size:
        chosen = np.flatnonzero(values >= np.partition(values, -most)[-most])
    found: Int64 = chosen[np.argsort(-values[chosen], kind="stable")][:most]
    return found


def _range(values: NDArray[np.signedinteger[Any]]) -> tuple[int, int]:
    """Return the lowest value, and how many there are from it to the highest."""
    low = int(values.min())
    return low, int(values.max()) - low + 1
