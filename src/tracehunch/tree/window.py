"""The time a file covers: its window, and the gaps in it that were not recorded."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import GPU_CATS, UNKNOWN_NS, Cat, Int64, Trace
from tracehunch.tree.names import step_number

_COVERING: Final = (Cat.CPU_OP, Cat.USER_ANNOTATION, Cat.RUNTIME, Cat.DRIVER, *GPU_CATS)
"""Python frames and the profiler's own rows are left out: the window is that of the program."""

_EMPTY_SHARE: Final = 0.9
_EMPTY_NS: Final = 500_000_000
_OFF_NS: Final = 1_000_000  # to stop the profiler and start it again takes longer
_OFF_STEPS: Final = 0.5  # at least one step ran without it, at its own pace


@dataclass(frozen=True, slots=True)
class Window:
    """``gaps`` are spans (start, end) inside the window in which the profiler was off: no idle time."""

    start_ns: int = 0
    end_ns: int = 0
    gaps: tuple[tuple[int, int], ...] = ()

    @property
    def recorded_ns(self) -> int:
        """Length of the window without its gaps."""
        return self.end_ns - self.start_ns - sum(end - start for start, end in self.gaps)

    def unrecorded_ns(self, start_ns: Int64, end_ns: Int64) -> Int64:
        """How much of each span lies in gaps."""
        lost = np.zeros(start_ns.size, dtype=np.int64)
        for start, end in self.gaps:
            lost += np.maximum(np.minimum(end_ns, end) - np.maximum(start_ns, start), 0)
        return lost


def window_of(trace: Trace, steps: NDArray[np.bool_]) -> Window:
    """From the first start to the last end of ops, annotations, calls and GPU activities."""
    rows = trace.rows(*_COVERING)
    rows = rows[trace.start_ns[rows] != UNKNOWN_NS]
    if not rows.size:
        return Window()
    start, end = trace.start_ns[rows], trace.end_ns()[rows]
    lengths = trace.dur_ns[steps & (trace.dur_ns != UNKNOWN_NS)]
    least = max(_OFF_NS, int(_OFF_STEPS * np.median(lengths)) if lengths.size else 0)
    return Window(int(start.min()), int(end.max()), _gaps(start, end, _step_jumps(trace, steps), least))


def _gaps(start: Int64, end: Int64, jumps: list[tuple[int, int]], least: int) -> tuple[tuple[int, int], ...]:
    """Find stretches with no row at all: between steps whose numbers jump, or longer than all the rest.

    Numbers jump also where the row of a step is lost: then its ops are there, and leave only short stretches.
    """
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order])
    opens, closes = reach[:-1], start[order][1:]
    empty = closes - opens
    found: set[tuple[int, int]] = set()
    if empty.size and empty.max() > max(_EMPTY_SHARE * int(reach[-1] - start.min()), _EMPTY_NS):
        found.add((int(opens[empty.argmax()]), int(closes[empty.argmax()])))
    for left, right in jumps:
        low, high = int(np.searchsorted(opens, left)), int(np.searchsorted(closes, right, "right"))
        if low < high and empty[low:high].max() > least:
            widest = low + int(empty[low:high].argmax())
            found.add((int(opens[widest]), int(closes[widest])))
    return tuple(sorted(found))


def _step_jumps(trace: Trace, step_rows: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(end, start) of steps that follow each other on a thread without their numbers doing so."""
    steps: dict[int, list[tuple[int, int, int]]] = {}
    end = trace.end_ns()
    for row in np.flatnonzero(step_rows).tolist():
        number = step_number(trace.name_of(row))
        steps.setdefault(int(trace.thread[row]), []).append((int(trace.start_ns[row]), int(end[row]), number))
    jumps = []
    for of_thread in steps.values():
        of_thread.sort()
        for (_, left, number), (right, _, later) in pairwise(of_thread):
            if later != number + 1 and right > left:
                jumps.append((left, right))
    return jumps
