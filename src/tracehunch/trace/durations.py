"""Durations of GPU activities that cannot be true because they run over what comes after them.

A stream works in order. Overlap on one is legal, but narrow: with programmatic dependent launch the next
kernel begins early and still cannot end before the one it depends on, and the branches of a CUDA graph all
carry its one launch. So an activity has a wrong duration if, at ten times the usual length or more, several
activities of other launches began after it on its stream and had ended before it does. Where hardware queues
are shared by several streams (ROCm) that happens to most activities of a name, which therefore are believed;
and nothing is concluded where a file holds several processes, whose streams of one number are not one stream.
The last ones of a stream have nothing after them to run over: theirs are wrong if they end far behind
everything else in the file, the host's wait for them included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehunch.trace.model import ABSENT, UNKNOWN_NS, Cat, Int32, Int64
from tracehunch.trace.notes import Notes, Trouble

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracehunch.trace.columns import Batch

_PAIR = 2  # there must be others
_LONG_MEDIANS = 10
_SEVERAL = 3
_LOOKED_AT = 64  # activities after a suspect
_MOST_OF_NAME = 0.5
_HUGE_MEDIANS = 100
_EXCESS_NS, _EXCESS_WINDOWS = 100_000, 0.1  # behind everything else, having run over the next one
_EXCESS_LAST_NS, _EXCESS_LAST_WINDOWS = 100_000_000, 10  # having run over nothing


def distrust_durations(batch: Batch, process: Int32, notes: Notes) -> None:
    """Set durations that cannot be true to UNKNOWN_NS, in place, and count them.

    ``process`` numbers the process of every row.
    """
    rows = batch.gpu.row[batch.start_ns[batch.gpu.row] != UNKNOWN_NS]
    rows = rows[batch.dur_ns[rows] != UNKNOWN_NS]
    if len(rows) < _PAIR:
        return
    dur_ns = batch.dur_ns[rows]
    usual_ns = max(float(np.median(dur_ns)), 1.0)
    long = rows[dur_ns > _LONG_MEDIANS * usual_ns]
    if not len(long):
        return
    n_started, n_outlasted = _later_on_stream(batch, long)
    outlasting = n_outlasted >= _SEVERAL
    if outlasting.any():
        outlasting = _exceptional(batch, long, outlasting) & (_n_host_processes(batch, process) == 1)
    far_out = _ends_far_out(batch, long, n_started, _HUGE_MEDIANS * usual_ns)
    wrong = long[outlasting | far_out]
    batch.dur_ns[wrong] = UNKNOWN_NS
    notes.count(Trouble.DUR_HUGE, len(wrong))


def _later_on_stream(batch: Batch, suspects: Int64) -> tuple[Int64, Int64]:
    """How many of the next activities on its stream begin during each suspect, and end before it does.

    The second number leaves out those of the suspect's own launch.
    """
    gpu = batch.gpu
    order = np.lexsort((batch.start_ns[gpu.row], gpu.stream, gpu.device))
    rows, stream, device = gpu.row[order], gpu.stream[order], gpu.device[order]
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows))
    at = place[np.searchsorted(gpu.row, suspects)]
    starts, end = batch.start_ns[rows], batch.start_ns[suspects] + batch.dur_ns[suspects]
    ends = starts + np.where(batch.dur_ns[rows] == UNKNOWN_NS, 0, batch.dur_ns[rows])
    started, outlasted = np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=np.int64)
    for ahead in range(1, min(_LOOKED_AT, len(rows) - 1) + 1):
        later = np.minimum(at + ahead, len(rows) - 1)
        same = (at + ahead < len(rows)) & (device[later] == device[at]) & (stream[later] == stream[at])
        during = same & (stream[at] != ABSENT) & (starts[later] > batch.start_ns[suspects])
        during &= starts[later] < end
        if not during.any():
            break
        started += during
        other = batch.correlation[rows[later]] != batch.correlation[suspects]
        outlasted += during & other & (ends[later] < end)
    return started, outlasted


def _exceptional(batch: Batch, suspects: Int64, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Leave out of the chosen suspects those that are most of the activities of their name."""
    names, counts = np.unique(batch.name[suspects[chosen]], return_counts=True)
    of_name = np.array([(batch.name[batch.gpu.row] == name).sum() for name in names])
    usual = names[(counts > 1) & (counts > _MOST_OF_NAME * of_name)]
    return np.asarray(chosen & ~np.isin(batch.name[suspects], usual))


def _n_host_processes(batch: Batch, process: Int32) -> int:
    on_host = (batch.cat == Cat.CPU_OP) | (batch.cat == Cat.RUNTIME)
    return max(len(np.unique(process[on_host])), 1)


def _ends_far_out(batch: Batch, long: Int64, n_started: Int64, huge_ns: float) -> NDArray[np.bool_]:
    """Whether suspects of at least ``huge_ns`` end far behind everything that is no suspect."""
    huge = batch.dur_ns[long] > huge_ns
    trusted = (batch.start_ns != UNKNOWN_NS) & (batch.cat != Cat.GPU_ANNOTATION)
    trusted[long[huge]] = False
    work = trusted & (batch.cat != Cat.SPAN)  # the profiler's own window may be far wider
    if not huge.any() or not work.any():
        return np.zeros(len(long), dtype=bool)
    ends = batch.start_ns + np.where(batch.dur_ns == UNKNOWN_NS, 0, batch.dur_ns)
    last, first = int(ends[work].max()), int(batch.start_ns[work].min())
    excess = batch.start_ns[long] + batch.dur_ns[long] - last
    excess_of_last = batch.start_ns[long] + batch.dur_ns[long] - int(ends[trusted].max())
    far = excess > max(_EXCESS_NS, _EXCESS_WINDOWS * (last - first))
    far_for_last = excess_of_last > max(_EXCESS_LAST_NS, _EXCESS_LAST_WINDOWS * (last - first))
    return np.asarray(huge & (far & (n_started > 0) | far_for_last))
