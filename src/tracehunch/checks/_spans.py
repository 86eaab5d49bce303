"""Sets of spans on the time axis: which parts of some lie in others, and which in none."""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int64
from tracehunch.tree import NONE
from tracehunch.tree.timeline import expand

_FOREVER: Final = 2**62
_COLUMNS: Final = ("start_ns", "end_ns", "row")


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans sorted by start that do not overlap; ``row`` is the row of the trace that each stands for."""

    start_ns: Int64
    end_ns: Int64
    row: Int64

    def __len__(self) -> int:
        return self.start_ns.size

    @classmethod
    def empty(cls) -> Self:
        """No spans."""
        none = np.zeros(0, dtype=np.int64)
        return cls(none, none, none)

    @classmethod
    def of(cls, start_ns: Int64, end_ns: Int64, row: Int64) -> Self:
        """Join any spans; of those that overlap the earliest gives the row."""
        kept = end_ns > start_ns
        order = np.argsort(start_ns[kept], kind="stable")
        start, end, rows = start_ns[kept][order], end_ns[kept][order], row[kept][order]
        if not start.size:
            return cls.empty()
        reach = np.maximum.accumulate(end)
        first = np.flatnonzero(np.r_[True, start[1:] > reach[:-1]])
        return cls(start[first], reach[np.r_[first[1:] - 1, reach.size - 1]], rows[first])

    def gaps(self) -> "Spans":
        """All the time that is in none of them."""
        start, end = np.r_[-_FOREVER, self.end_ns], np.r_[self.start_ns, _FOREVER]
        return Spans(start, end, np.full(start.size, NONE, dtype=np.int64))

    def outside(self, other: "Spans") -> "Spans":
        """Cut away what lies in any of the others."""
        mine, _, start, end = intersect(self.start_ns, self.end_ns, other.gaps())
        return Spans(start, end, self.row[mine])

    def at_least(self, length_ns: int) -> "Spans":
        """Those of at least this length."""
        return self.pick(self.end_ns - self.start_ns >= length_ns)

    def pick(self, wanted: NDArray[np.bool_]) -> "Spans":
        """Those that are wanted."""
        return Spans(self.start_ns[wanted], self.end_ns[wanted], self.row[wanted])

    @classmethod
    def in_order(cls, parts: "list[Spans]") -> tuple["Spans", Int64]:
        """Put spans together in order of start, as they are, and say what sorted them."""
        start, end, row = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
        order = np.argsort(start, kind="stable")
        return cls(start[order], end[order], row[order]), order

    @classmethod
    def joined(cls, parts: "list[Spans]") -> "Spans":
        """Put spans together, and join those that overlap."""
        spans, _ = cls.in_order(parts)
        return cls.of(spans.start_ns, spans.end_ns, spans.row)


def intersect(start_ns: Int64, end_ns: Int64, spans: Spans) -> tuple[Int64, Int64, Int64, Int64]:
    """For any stretches of time their parts that lie in spans.

    Returns four columns, in order of the stretches: number of the stretch, number of the span, start, end.
    """
    first = np.searchsorted(spans.end_ns, start_ns, "right")
    last = np.maximum(np.searchsorted(spans.start_ns, end_ns, "left"), first)
    stretch, span = expand(first, last)
    start = np.maximum(start_ns[stretch], spans.start_ns[span])
    end = np.minimum(end_ns[stretch], spans.end_ns[span])
    return stretch, span, start, end
