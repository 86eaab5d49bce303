"""Steps that ranks number differently: the collectives of one step tell which step of the others it is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from tracehunch.compare.ranks.matching import Matches
    from tracehunch.compare.ranks.table import Table
    from tracehunch.trace.model import Int64

_FEWEST: Final = 2
_NEARLY_ALL: Final = 0.9


def steps_ahead(table: Table, matches: Matches, members: int) -> Int64:
    """Return by how much the numbers of each member's steps are ahead of those of most others."""
    ahead = np.zeros(members, dtype=np.int64)
    rows = np.flatnonzero((matches.call != ABSENT) & (table.step != ABSENT))
    if not rows.size:
        return ahead
    rows = rows[np.lexsort((table.step[rows], matches.call[rows]))]
    _, where, size = np.unique(matches.call[rows], return_index=True, return_counts=True)
    middle = np.repeat(table.step[rows][where + (size - 1) // 2], size)
    several = np.repeat(size, size) >= 2  # ranks
    apart, member = (table.step[rows] - middle)[several], table.member[rows][several]
    for one in np.unique(member[apart != 0]).tolist():
        values, counts = np.unique(apart[member == one], return_counts=True)
        if counts.max() >= max(_FEWEST, _NEARLY_ALL * counts.sum()):
            ahead[one] = values[counts.argmax()]
    return ahead


def renumbered(table: Table, ahead: Int64) -> Table:
    """Return the table with the steps of all ranks numbered alike."""
    if not ahead.any():
        return table
    return replace(table, step=np.where(table.step == ABSENT, ABSENT, table.step - ahead[table.member]))
