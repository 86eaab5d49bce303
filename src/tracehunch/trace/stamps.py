"""Timestamps that cannot be true, and negative durations; ``durations`` looks at those that are too long."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehunch.trace.model import GPU_CATS, UNKNOWN_NS, Cat
from tracehunch.trace.notes import Notes, Trouble

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tracehunch.trace.columns import Batch

_NEAR_ZERO_NS = 1_000_000
_FAR_NS = 1_000_000_000
_FAR_FOR_HOST_NS = 3600 * _FAR_NS  # stamps of the host may well begin at 0
_FAR_FROM_HOST_NS = 60 * _FAR_NS
_FAR_WINDOWS = 10  # so many times the rest's whole span away
_MOST_LOST = 0.5  # more of them are no accident: another clock


def distrust_stamps(batch: Batch, notes: Notes) -> None:
    """Set what cannot be true to UNKNOWN_NS, in place, and count it."""
    negative = (batch.dur_ns < 0) & (batch.dur_ns != UNKNOWN_NS)
    batch.dur_ns[negative] = UNKNOWN_NS
    notes.count(Trouble.DUR_NEGATIVE, int(negative.sum()))
    lost = _near_zero(batch) | _far_from_host(batch)
    if not lost.any():
        return
    usable = batch.start_ns[(batch.start_ns != UNKNOWN_NS) & ~lost & (batch.cat != Cat.SPAN)]
    batch.start_ns[lost] = UNKNOWN_NS
    window = int(usable.max() - usable.min())
    batch.dur_ns[lost & (batch.dur_ns > max(_FAR_NS, window))] = UNKNOWN_NS  # an end less a lost start
    notes.count(Trouble.LOST_STAMP, int(lost.sum()))


def _near_zero(batch: Batch) -> NDArray[np.bool_]:
    """Rows that start at 0, or GPU rows at about it, where all else lies far away.

    CUPTI writes 0 for a stamp that it never got; converted to another clock it may come out near 0.
    """
    none = np.zeros(len(batch.cat), dtype=bool)
    zero = batch.start_ns == 0
    gpu = batch.gpu.row[np.abs(batch.start_ns[batch.gpu.row]) < _NEAR_ZERO_NS]
    zero[gpu[batch.start_ns[gpu] != UNKNOWN_NS]] = True  # which has no absolute value and stays negative
    if not zero.any():
        return none
    others = batch.start_ns[(batch.start_ns != UNKNOWN_NS) & ~zero & (batch.cat != Cat.SPAN)]
    if not len(others):
        return none
    first, window = int(others.min()), int(others.max() - others.min())
    if first <= max(_FAR_NS, _FAR_WINDOWS * window):
        return none
    return zero if first > _FAR_FOR_HOST_NS else np.asarray(zero & np.isin(batch.cat, GPU_CATS))


def _far_from_host(batch: Batch) -> NDArray[np.bool_]:
    """GPU activities that start a minute and ten windows away from all that the host did."""
    none = np.zeros(len(batch.cat), dtype=bool)
    gpu = batch.gpu.row[batch.start_ns[batch.gpu.row] != UNKNOWN_NS]
    on_host = (batch.cat == Cat.CPU_OP) | (batch.cat == Cat.RUNTIME)
    host = batch.start_ns[on_host & (batch.start_ns != UNKNOWN_NS) & ~_near_zero(batch)]
    if not len(gpu) or not len(host):
        return none
    first, last = int(host.min()), int(host.max())
    far = max(_FAR_FROM_HOST_NS, _FAR_WINDOWS * (last - first))
    outside = (batch.start_ns[gpu] < first - far) | (batch.start_ns[gpu] > last + far)
    if outside.mean() <= _MOST_LOST:
        none[gpu[outside]] = True
    return none
