"""The calls of a group that ranks are held against: those of one rank, and what others recorded beyond them.

Ranks that began or stopped recording at other steps share calls that the rank with the most has not. A rank
that pairs with the reference tells where its further calls stand: by its own clock, less the distance of the
nearest pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from tracehunch.compare.ranks.shifts import Calls
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from tracehunch.compare.ranks.shifts import Pairs
    from tracehunch.trace.model import Int64

_CLEAR_NS: Final = 20_000
"""By how much a call has to end after the last known one, or before the first, not to be that one."""
_COLUMNS: Final = ("number", "sequence", "signature", "step", "end_ns", "together")


@dataclass(frozen=True, slots=True)
class Reference:
    """Calls in order, and for each what number it has among those of the group."""

    calls: Calls
    numbers: Int64

    @classmethod
    def of(cls, calls: Calls) -> Self:
        """Begin with the calls of one rank."""
        return cls(calls, np.arange(len(calls)))

    def joined(self, own: Calls, pairs: Pairs) -> tuple[Self, Int64]:
        """Add what a rank recorded before the first call and after the last; ``pairs``: with this.

        Returns the longer reference, and of each of the rank's calls the number; ABSENT: it is none of these.
        """
        mine = np.full(len(own), ABSENT, dtype=np.int64)
        mine[pairs.own] = self.numbers[pairs.other]
        begin, end = np.argmin(pairs.own), np.argmax(pairs.own)
        early = self._moved(own, int(pairs.own[begin]), int(pairs.other[begin]))
        late = self._moved(own, int(pairs.own[end]), int(pairs.other[end]))
        place = np.arange(len(own))
        first = np.flatnonzero(
            (place < pairs.own[begin]) & (early.end_ns < self.calls.end_ns.min() - _CLEAR_NS)
        )
        last = np.flatnonzero((place > pairs.own[end]) & (late.end_ns > self.calls.end_ns.max() + _CLEAR_NS))
        if not first.size and not last.size:
            return self, mine
        new = len(self.calls) + np.arange(first.size + last.size)
        mine[first], mine[last] = new[: first.size], new[first.size :]
        parts = ((early, first), (self.calls, np.arange(len(self.calls))), (late, last))
        longer = {name: np.concatenate([getattr(one, name)[at] for one, at in parts]) for name in _COLUMNS}
        numbers = np.concatenate([new[: first.size], self.numbers, new[first.size :]])
        return type(self)(Calls(**longer), numbers), mine

    def _moved(self, own: Calls, mine: int, theirs: int) -> Calls:
        """Return a rank's calls numbered and dated as the reference has them, by one pair."""
        by = int(own.number[mine] - self.calls.number[theirs])
        distance = int(own.end_ns[mine] - self.calls.end_ns[theirs])
        return replace(own, number=own.number - by, end_ns=own.end_ns - distance)
