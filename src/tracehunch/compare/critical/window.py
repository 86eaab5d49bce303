"""What part of a trace a graph is built of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehunch.trace.model import UNKNOWN_NS

if TYPE_CHECKING:
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree


@dataclass(frozen=True, slots=True)
class Window:
    """A process, the thread that the scope is on, a span of time, moments to keep."""

    process: int
    thread: int
    start_ns: int
    end_ns: int
    marks_ns: tuple[int, ...]

    @property
    def span(self) -> tuple[int, int]:
        """From when until before when."""
        return self.start_ns, self.end_ns

    def holds(self, tree: Tree, rows: Int64) -> Int64:
        """Return those of some rows that its process began within it."""
        trace = tree.trace
        start = trace.start_ns[rows]
        inside = (start != UNKNOWN_NS) & (start >= self.start_ns) & (start < self.end_ns)
        found: Int64 = rows[inside & (trace.process[rows] == self.process)]
        return found
