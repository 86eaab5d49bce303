"""Distinct rows of several columns of whole numbers, by one sort of one column: numpy's own way is slow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tracehunch.trace.model import Int64

_LARGEST = 2**62


def distinct_rows(*columns: Int64) -> tuple[list[Int64], Int64]:
    """Return the distinct rows, column by column and in order, and of each row which one it is."""
    ranks = [_ranked(column) for column in columns]
    key, size = ranks[0][1], ranks[0][0].size
    for values, where in ranks[1:]:
        if size * max(values.size, 1) > _LARGEST:
            size, key = (found := np.unique(key, return_inverse=True))[0].size, found[1].reshape(-1)
        key = key * max(values.size, 1) + where
        size *= max(values.size, 1)
    _, first, where = np.unique(key, return_index=True, return_inverse=True)
    return [column[first] for column in columns], where.reshape(-1)


def _ranked(column: Int64) -> tuple[Int64, Int64]:
    """Return the values of a column, and of each entry its place among them; no sort if they lie close."""
    if not column.size:
        return column, column.astype(np.int64)
    low, high = int(column.min()), int(column.max())
    if high - low < 4 * column.size + 1024:  # small numbers: their distance does
        return np.arange(high - low + 1), column - low
    values, where = np.unique(column, return_inverse=True)
    return values, where.reshape(-1)
