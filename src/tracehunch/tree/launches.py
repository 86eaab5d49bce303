"""GPU activity -> the call that launched it, by correlation id."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import LAUNCH_CATS, UNKNOWN_NS, Int8, Int32, Int64, Trace
from tracehunch.tree.apis import LAUNCHES, Api, is_one_of
from tracehunch.tree.duplicates import Doubt, Settled, settle
from tracehunch.tree.model import Link
from tracehunch.tree.nesting import NONE
from tracehunch.tree.processes import processes_of_gpu_rows

_MOST: Final = 0.5


@dataclass(frozen=True, slots=True)
class Launches:
    """``launch`` and ``link`` per row of the trace; ``rows`` are the launches, ascending."""

    rows: Int64
    launch: Int32
    link: Int8
    captured: Int64  # launches recorded into a CUDA graph: they put nothing on the GPU themselves
    settled: Settled
    n_gpu: Int64  # GPU activities of each launch


def join(trace: Trace, api: Int8, parent: Int32) -> Launches:
    """Join GPU rows to launches within their process; each GPU row has at most one launch."""
    n = len(trace)
    gpu = trace.gpu.row.astype(np.int64)
    known = trace.correlation[gpu] > 0
    rows = _launch_rows(trace, api, trace.correlation[gpu][known])
    ids, wanted, undecided = _ids(trace, rows, gpu)
    order, first, count = _lookup(ids, wanted)
    found = np.full(gpu.size, NONE, dtype=np.int64)
    single = known & (count == 1)
    found[single] = rows[order[first[single]]]
    repeated = np.flatnonzero(known & ((count > 1) | undecided))
    settled = settle(trace, Doubt(gpu[repeated], wanted[repeated], rows, ids, found[single]), parent)
    found[repeated] = settled.launch
    state = np.where(known, Link.OUTSIDE_WINDOW, Link.UNLINKED)
    state[repeated[settled.ambiguous]] = Link.AMBIGUOUS
    state[found != NONE] = Link.LINKED
    launch, link = np.full(n, NONE, dtype=np.int32), np.zeros(n, dtype=np.int8)
    launch[gpu], link[gpu] = found, state
    counts = np.bincount(found[found != NONE], minlength=n)
    captured = rows[_during_capture(trace, api, rows) & (counts[rows] == 0)]
    if captured.size or settled.inner.size:
        rows = np.setdiff1d(rows, np.union1d(captured, settled.inner))
    return Launches(rows, launch, link, captured, settled, counts[rows])


def _launch_rows(trace: Trace, api: Int8, wanted: Int64) -> Int64:
    """Find calls that launch by their name, or by a correlation that only they and a GPU row have.

    A launch without a correlation of its own (0, or none) is a launch all the same: nothing can join it.
    """
    calls = trace.rows(*LAUNCH_CATS)
    by_name = is_one_of(api, LAUNCHES)[calls]
    rows = calls[by_name]
    calls, by_name = calls[trace.correlation[calls] > 0], by_name[trace.correlation[calls] > 0]
    missing = np.unique(wanted[_lookup(trace.correlation[rows], wanted)[2] == 0])
    others = calls[~by_name]
    others = others[np.isin(trace.correlation[others], missing)] if missing.size else others[:0]
    return np.union1d(rows, others) if others.size else rows


def _ids(trace: Trace, rows: Int64, gpu: Int64) -> tuple[Int64, Int64, NDArray[np.bool_]]:
    """Ids of launches and GPU rows, unique over processes, and GPU rows whose process is not known."""
    of_rows, of_gpu = trace.correlation[rows], trace.correlation[gpu]
    process = processes_of_gpu_rows(trace, rows, gpu)
    if process is None:
        return of_rows, of_gpu, np.zeros(gpu.size, dtype=bool)
    values = np.unique(of_rows)
    code = np.searchsorted(values, of_rows) + trace.process[rows].astype(np.int64) * values.size
    at = np.minimum(np.searchsorted(values, of_gpu), values.size - 1)
    wanted = np.where(values[at] == of_gpu, at + process.astype(np.int64) * values.size, NONE)
    return code, np.where(process == NONE, NONE, wanted), process == NONE


def _lookup(ids: Int64, wanted: Int64) -> tuple[Int64, Int64, Int64]:
    """Return what sorts the ids, and where each wanted one begins in that order and how often it is there."""
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    first = np.searchsorted(ordered, wanted, "left")
    return order, first, np.searchsorted(ordered, wanted, "right") - first


def _during_capture(trace: Trace, api: Int8, rows: Int64) -> NDArray[np.bool_]:
    """Tell which launches lie between the begin and the end of a stream capture on their thread."""
    begins = np.flatnonzero(api == Api.CAPTURE_BEGIN)
    ends = np.flatnonzero(api == Api.CAPTURE_END)
    inside = np.zeros(rows.size, dtype=bool)
    for begin in begins.tolist():
        thread, start = trace.thread[begin], trace.start_ns[begin]
        later = trace.start_ns[ends][(trace.thread[ends] == thread) & (trace.start_ns[ends] >= start)]
        stop = later.min() if later.size else np.iinfo(np.int64).max
        at = trace.start_ns[rows]
        inside |= (trace.thread[rows] == thread) & (at >= start) & (at < stop) & (at != UNKNOWN_NS)
    return inside


def external_ids_agree(trace: Trace, gpu: Int64, op: Int64) -> bool:
    """Whether GPU rows name their op by its External id; ops and GPU rows of old traces count in two ways."""
    both = (op != NONE) & (trace.external_id[gpu] > 0)
    both[both] = trace.external_id[op[both]] > 0
    same = trace.external_id[gpu[both]] == trace.external_id[op[both]]
    return not same.size or bool(same.mean() > _MOST)


def by_external_id(trace: Trace, rows: Int64, ops: NDArray[np.bool_]) -> Int64:
    """Return the op that a row's External id names; NONE where there is none or several ops have that id."""
    found = np.full(rows.size, NONE, dtype=np.int64)
    wanted = trace.external_id[rows]
    named = np.flatnonzero(ops & (trace.external_id > 0))
    if not rows.size or not named.size or not (wanted > 0).any():
        return found
    ids, first, counts = np.unique(trace.external_id[named], return_index=True, return_counts=True)
    at = np.minimum(np.searchsorted(ids, wanted), ids.size - 1)
    sure = (ids[at] == wanted) & (counts[at] == 1) & (wanted > 0)
    found[sure] = named[first[at[sure]]]
    return found
