"""Times that cannot be true: negative durations, lost timestamps, durations past everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehunch.trace.model import GPU_CATS, UNKNOWN_NS, Cat, Int64
from tracehunch.trace.notes import Notes, Trouble

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracehunch.trace.columns import Batch

_PAIR = 2  # there must be a next one
_FAR_NS = 1_000_000_000
_FAR_FOR_HOST_NS = 3600 * _FAR_NS  # stamps of the host may well begin at 0
_FAR_WINDOWS = 10  # so many times the rest's whole span away
_SUSPECT_MEDIANS = 100  # durations beyond so many medians of the GPU's are looked at
_EXCESS_NS = 100_000
_EXCESS_WINDOWS = 0.1


def distrust(batch: Batch, notes: Notes) -> None:
    """Set what cannot be true to UNKNOWN_NS, in place, and count it."""
    negative = (batch.dur_ns < 0) & (batch.dur_ns != UNKNOWN_NS)
    batch.dur_ns[negative] = UNKNOWN_NS
    notes.count(Trouble.DUR_NEGATIVE, int(negative.sum()))
    _distrust_lost_stamps(batch, notes)
    _distrust_huge_durations(batch, notes)


def _distrust_lost_stamps(batch: Batch, notes: Notes) -> None:
    """Give up stamps of 0 where all else lies far away (CUPTI writes 0 for a stamp that it never got)."""
    zero = batch.start_ns == 0
    others = batch.start_ns[(batch.start_ns != UNKNOWN_NS) & ~zero & (batch.cat != Cat.SPAN)]
    if not zero.any() or not len(others):
        return
    first, window = int(others.min()), int(others.max() - others.min())
    if first > max(_FAR_NS, _FAR_WINDOWS * window):
        lost = zero if first > _FAR_FOR_HOST_NS else zero & np.isin(batch.cat, GPU_CATS)
        batch.start_ns[lost] = UNKNOWN_NS
        batch.dur_ns[lost & (batch.dur_ns > max(_FAR_NS, window))] = UNKNOWN_NS  # an end less a lost start
        notes.count(Trouble.LOST_STAMP, int(lost.sum()))


def _distrust_huge_durations(batch: Batch, notes: Notes) -> None:
    """Give up durations of GPU activities that outlast the next on their stream and, by far, all else.

    Overlap on a stream alone is legal (programmatic dependent launch, branches of a graph).
    """
    gpu_dur_ns = batch.dur_ns[batch.gpu.row]
    known = gpu_dur_ns != UNKNOWN_NS
    if known.sum() < _PAIR:
        return
    threshold = _SUSPECT_MEDIANS * max(float(np.median(gpu_dur_ns[known])), 1.0)
    suspects = batch.gpu.row[known & (gpu_dur_ns > threshold) & (batch.start_ns[batch.gpu.row] != UNKNOWN_NS)]
    suspects = _overruns_next(batch, suspects[_ends_far_out(batch, suspects)])
    huge = suspects[_ends_far_out(batch, suspects)]
    batch.dur_ns[huge] = UNKNOWN_NS
    notes.count(Trouble.DUR_HUGE, len(huge))


def _ends_far_out(batch: Batch, suspects: Int64) -> NDArray[np.bool_]:
    """Whether suspects end far behind everything that is no suspect."""
    trusted = (batch.start_ns != UNKNOWN_NS) & (batch.cat != Cat.SPAN) & (batch.cat != Cat.GPU_ANNOTATION)
    trusted[suspects] = False
    if not len(suspects) or not trusted.any():
        return np.zeros(len(suspects), dtype=bool)
    starts, durations = batch.start_ns[trusted], batch.dur_ns[trusted]
    last = int((starts + np.where(durations == UNKNOWN_NS, 0, durations)).max())
    excess = batch.start_ns[suspects] + batch.dur_ns[suspects] - last
    return np.asarray(excess > max(_EXCESS_NS, _EXCESS_WINDOWS * (last - int(starts.min()))))


def _overruns_next(batch: Batch, suspects: Int64) -> Int64:
    """Those suspects during which another activity begins on the same stream."""
    gpu = batch.gpu
    starts = batch.start_ns[gpu.row]
    found = []
    for row, i in zip(suspects.tolist(), np.searchsorted(gpu.row, suspects).tolist(), strict=True):
        same = (gpu.device == gpu.device[i]) & (gpu.stream == gpu.stream[i])
        end = batch.start_ns[row] + batch.dur_ns[row]
        if (same & (starts > batch.start_ns[row]) & (starts < end)).any():
            found.append(row)
    return np.array(found, dtype=np.int64)
