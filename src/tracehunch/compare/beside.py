"""What ran beside some GPU activities on other streams: it shares multiprocessors and memory with them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.model import Cause
from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.units import elide, percent, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.model import Change, Use
    from tracehunch.trace.model import Int64, Trace
    from tracehunch.tree import Tree

_SAMPLES: Final = 32  # activities
_MORE: Final = 0.25
"""Difference of the shares from which on what runs beside it may explain a time."""
_NAME: Final = 60  # characters


@dataclass(frozen=True, slots=True)
class Beside:
    """Share of some activities' time in which others ran on the same GPU, and the one that ran longest."""

    share: float
    name: str


def beside_causes(change: Change, before: Tree, after: Tree) -> Iterator[Cause]:
    """Say that something runs beside it for more, or less, of its time."""
    first, second = beside(before.trace, change.before), beside(after.trace, change.after)
    if first is None or second is None or abs(second.share - first.share) < _MORE:
        return
    busier = second if second.share > first.share else first
    shares = f"for {percent(100 * second.share)} of its time, before for {percent(100 * first.share)}"
    name = elide(printable(busier.name), _NAME)
    yield Cause("beside", f"other work runs beside it on the GPU {shares}: mostly {name}", "medium")


def beside(trace: Trace, uses: Sequence[Use]) -> Beside | None:
    """Tell what ran beside some uses; None where they are no GPU activities."""
    rows = [row for use in uses if use.kind in ("kernel", "memcpy", "memset") for row in use.rows][:_SAMPLES]
    gpu = trace.gpu
    known = trace.start_ns[gpu.row] != UNKNOWN_NS
    row, device, stream = gpu.row[known], gpu.device[known], gpu.stream[known]
    start, end = trace.start_ns[row], trace.end_ns()[row]
    total, shared = 0, 0
    names: Counter[str] = Counter()
    for at in np.flatnonzero(np.isin(row, rows)).tolist():
        others = (device == device[at]) & (stream != stream[at]) & (start < end[at]) & (end > start[at])
        spans = np.maximum(start[others], start[at]), np.minimum(end[others], end[at])
        total += int(end[at] - start[at])
        shared += _union(*spans)
        for other, length in zip(row[others].tolist(), (spans[1] - spans[0]).tolist(), strict=True):
            names[trace.name_of(other)] += length
    if not total:
        return None
    return Beside(shared / total, names.most_common(1)[0][0] if names else "")


def _union(start: Int64, end: Int64) -> int:
    """Length of the union of some spans."""
    order = np.argsort(start)
    start, end = start[order], end[order]
    reach = np.maximum.accumulate(end) if end.size else end
    gaps = np.maximum(start[1:] - reach[:-1], 0)
    return int(reach[-1] - start[0] - gaps.sum()) if end.size else 0
