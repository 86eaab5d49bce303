"""Correlation ids that several launches have: which launch a GPU row belongs to."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Int32, Int64, Trace
from tracehunch.tree.nesting import NONE


@dataclass(frozen=True, slots=True)
class Settled:
    """One entry per GPU row whose id is repeated."""

    launch: Int64  # NONE where it could not be settled
    ambiguous: NDArray[np.bool_]
    n_ids: int  # ids that launches of one process share
    n_launches: int  # launches that share one
    inner: (
        Int64  # rows that repeat a launch one layer down (a driver call inside the runtime call, with its id)
    )


@dataclass(frozen=True, slots=True)
class Doubt:
    """GPU rows that several launches may have launched.

    ``wanted`` and ``ids`` are the ids of ``gpu`` and ``launches`` within their process. A GPU row whose
    process is not known wants NONE: all launches of its correlation come into question, but those ``taken``.
    """

    gpu: Int64
    wanted: Int64
    launches: Int64
    ids: Int64
    taken: Int64


def settle(trace: Trace, doubt: Doubt, parent: Int32) -> Settled:
    """Settle by External id, then order in time: never by chance, and no GPU row twice."""
    found = np.full(doubt.gpu.size, NONE, dtype=np.int64)
    ambiguous = np.zeros(doubt.gpu.size, dtype=bool)
    n_ids, sharing, inner = 0, 0, [np.zeros(0, dtype=np.int64)]
    for members, candidates in _groups(trace, doubt):
        repeats = candidates[np.isin(parent[candidates], candidates)]
        inner.append(repeats)
        rows = np.setdiff1d(candidates, repeats)
        if rows.size > 1 and np.unique(trace.process[rows]).size == 1:
            n_ids, sharing = n_ids + 1, sharing + rows.size
        found[members] = _settle_group(trace, doubt.gpu[members], rows)
        ambiguous[members] = (found[members] == NONE) & (rows.size > 0)
    return Settled(found, ambiguous, n_ids, sharing, np.unique(np.concatenate(inner)))


def _groups(trace: Trace, doubt: Doubt) -> Iterator[tuple[Int64, Int64]]:
    """Positions of GPU rows of one id, and the launches that come into question."""
    none = doubt.launches[:0]
    known = np.flatnonzero(doubt.wanted != NONE)
    by_id = _parts(doubt.ids, doubt.launches, np.unique(doubt.wanted[known]))
    for key, members in _parts(doubt.wanted[known], known, np.unique(doubt.wanted[known])).items():
        yield members, by_id.get(key, none)
    rest = np.flatnonzero(doubt.wanted == NONE)
    free = doubt.launches[~np.isin(doubt.launches, doubt.taken)] if rest.size else none
    correlations = trace.correlation[doubt.gpu[rest]]
    by_id = _parts(trace.correlation[free], free, np.unique(correlations))
    for key, members in _parts(correlations, rest, np.unique(correlations)).items():
        yield members, by_id.get(key, none)


def _parts(keys: Int64, values: Int64, wanted: Int64) -> dict[int, Int64]:
    """Values by key, for the wanted keys."""
    chosen = np.isin(keys, wanted)
    keys, values = keys[chosen], values[chosen]
    order = np.argsort(keys, kind="stable")
    names, first = np.unique(keys[order], return_index=True)
    return dict(zip(names.tolist(), np.split(values[order], first[1:]), strict=True)) if names.size else {}


def _settle_group(trace: Trace, gpu: Int64, launches: Int64) -> Int64:
    """GPU rows of one id to launches of that id; NONE where nothing tells."""
    found = np.full(gpu.size, NONE, dtype=np.int64)
    if launches.size == 1:
        found[:] = launches[0]
        return found
    ids, first, counts = np.unique(trace.external_id[launches], return_index=True, return_counts=True)
    for row, external in enumerate(trace.external_id[gpu].tolist()):
        at = int(np.searchsorted(ids, external))
        if external > 0 and at < ids.size and ids[at] == external and counts[at] == 1:
            found[row] = launches[first[at]]
    if np.unique(trace.process[launches]).size > 1:
        return found  # order in time says nothing across processes
    _settle_by_time(trace, gpu, launches[~np.isin(launches, found)], found)
    return found


def _settle_by_time(trace: Trace, gpu: Int64, free: Int64, found: Int64) -> None:
    """As many rows as launches: in order, if each starts after its launch; else what one launch precedes."""
    rest = np.flatnonzero(found == NONE)
    rest = rest[np.argsort(trace.start_ns[gpu[rest]], kind="stable")]
    free = free[np.argsort(trace.start_ns[free], kind="stable")]
    if rest.size == free.size and (trace.start_ns[free] <= trace.start_ns[gpu[rest]]).all():
        found[rest] = free
        return
    for row in rest.tolist():
        before = np.count_nonzero(trace.start_ns[free] <= trace.start_ns[gpu[row]])
        if before == 1:
            found[row], free = free[0], free[1:]
