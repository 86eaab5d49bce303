"""Begin/end pairs (ph B and E) -> durations, paired per thread, innermost first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.trace.notes import Notes, Trouble

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.trace.columns import Batch
    from tracehunch.trace.events import End

_BEGIN, _END = 0, 1


def join_pairs(
    batch: Batch, begins: Sequence[int], ends: Sequence[End], names: Sequence[str], notes: Notes
) -> None:
    """Give the rows of begin events (``begins``: their positions) their durations, in place."""
    rows = np.searchsorted(batch.event, np.array(begins, dtype=np.int64)).tolist()
    marks = [(int(batch.start_ns[r]), int(batch.event[r]), _BEGIN, int(batch.thread[r]), r) for r in rows]
    marks += [(end.time_ns, end.event, _END, end.thread, i) for i, end in enumerate(ends)]
    usable = [mark for mark in marks if mark[0] != UNKNOWN_NS]
    usable.sort()
    open_rows: dict[int, list[int]] = defaultdict(list)
    closed = 0
    for time_ns, _, kind, thread, which in usable:
        if kind == _BEGIN:
            open_rows[thread].append(which)
        elif (row := _innermost(open_rows[thread], ends[which].name, batch, names)) is not None:
            batch.dur_ns[row] = time_ns - batch.start_ns[row]
            closed += 1
    notes.count(Trouble.UNMATCHED_BEGIN, len(begins) - closed)
    notes.count(Trouble.UNMATCHED_END, len(ends) - closed)


def _innermost(stack: list[int], name: str, batch: Batch, names: Sequence[str]) -> int | None:
    """Take the innermost open begin that an end of this name closes; an end without a name closes any."""
    for depth in range(len(stack) - 1, -1, -1):
        if not name or names[batch.name[stack[depth]]] == name:
            return stack.pop(depth)
    return None
