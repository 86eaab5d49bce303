"""The work of each GPU activity: FLOPs and least bytes, as shares of the op call that launched it.

The FLOPs and bytes of a product, convolution or attention belong to the kernels of the call that multiply;
what else it launches (to turn a layout, to add partial sums) is part of it and has none of its own. The bytes
of any other call belong to all its kernels. Several that share do so by their time. Memcpys and memsets move
what the profiler recorded of them, a copy within the GPU both ways.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.facts.activities import (
    DIRECTIONS,
    KERNEL,
    MEMCPY,
    Activities,
    is_doubtful,
    multiplies,
)
from tracehunch.facts.calls import OpCalls
from tracehunch.facts.column import Bool
from tracehunch.facts.peaks import peak_flops
from tracehunch.facts.work import Work
from tracehunch.hardware import Gpu
from tracehunch.trace.model import Float64, Int64
from tracehunch.tree import NONE, Api, Link, Tree

REPLAY: Final = "the ops behind the kernels of a CUDA graph's replay are not in the trace"
OUTSIDE: Final = "kernels launched outside the recorded window have no op in the trace"
NO_OP: Final = "kernels that no op launched have no shapes in the trace"

_UNKNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class ActivityWork:
    """One entry per GPU activity.

    ``flops`` and ``bytes`` are 0 where they are not known. ``part``: a helper of a call whose work other
    kernels have. ``doubtful``: its name does not tell whether it multiplies. ``peak`` is the FLOP/s of the
    unit and format that it multiplies with; nan where it is not known or nothing is multiplied. ``reason``,
    where something is not known, is a position in ``reasons``.
    """

    flops: Int64
    bytes: Int64
    flops_known: Bool
    bytes_known: Bool
    part: Bool
    doubtful: Bool
    peak: Float64
    reason: Int64
    reasons: tuple[str, ...]

    def why(self, item: Int64) -> str:
        """Say why something of these activities is not known."""
        lacking = item[~(self.flops_known[item] & self.bytes_known[item])]
        return self.reasons[int(self.reason[lacking[0]])] if lacking.size else ""


@dataclass(frozen=True, slots=True)
class _OfCall:
    """The work of the call that launched each GPU activity; -1 where it is not known or there is none."""

    flops: Int64
    bytes: Int64
    known: Bool
    work: Int64  # position in OpCalls.works; NONE


def activity_work(tree: Tree, gpu: Activities, calls: OpCalls, model: Gpu | None) -> ActivityWork:
    """Share out the work of the calls. ``model`` is the GPU, None where its peaks are not known."""
    kernel, of_call = gpu.kind == KERNEL, _of_calls(gpu, calls)
    sure, doubtful = (
        kernel & gpu.of_uses(np.array([test(use.identity) for use in gpu.uses], dtype=bool))
        for test in (multiplies, is_doubtful)
    )
    carries = _carriers(calls, kernel & of_call.known, of_call.flops != 0, sure | doubtful)
    part = kernel & of_call.known & ~carries
    told = carries & (of_call.flops >= 0) & ~(sure & (of_call.flops == 0))  # a product is no elementwise op
    flops_known = part | told | (~carries & ~sure & ~doubtful)
    recorded = _recorded_bytes(tree, gpu)
    bytes_known = np.where(kernel, part | (carries & (of_call.bytes >= 0)), recorded >= 0)
    flops, moved = (
        _shared(worth, carries & known, calls.of_activity, gpu.dur_ns)
        for worth, known in ((of_call.flops, flops_known), (of_call.bytes, bytes_known))
    )
    reason, reasons = _reasons(tree, gpu, calls, of_call)
    return ActivityWork(
        flops=flops,
        bytes=np.where(kernel, moved, np.maximum(recorded, 0)),
        flops_known=flops_known,
        bytes_known=bytes_known,
        part=part,
        doubtful=doubtful,
        peak=_peaks(gpu, calls, of_call, carries & (flops > 0), model),
        reason=reason,
        reasons=reasons,
    )


def _of_calls(gpu: Activities, calls: OpCalls) -> _OfCall:
    """Spread the work of calls over activities."""
    none = Work(None, None)
    works = [*(one if isinstance(one, Work) else none for one in calls.works), none]  # the last is no call's
    known = np.array([isinstance(one, Work) for one in (*calls.works, "")], dtype=bool)
    flops, moved = (
        np.array([_UNKNOWN if one is None else one for one in column], dtype=np.int64)
        for column in ([work.flops for work in works], [work.bytes for work in works])
    )
    work = np.full(gpu.op.size, NONE, dtype=np.int64)
    launched = calls.of_activity != NONE
    work[launched] = calls.alike[calls.of_activity[launched]]
    return _OfCall(flops[work], moved[work], known[work], work)


def _carriers(calls: OpCalls, kernel: Bool, has_flops: Bool, multiplying: Bool) -> Bool:
    """Tell which kernels have their call's work: where it multiplies those that do, if there are any."""
    chosen = np.flatnonzero(kernel & multiplying)
    with_some = np.zeros(calls.row.size + 1, dtype=bool)
    with_some[calls.of_activity[chosen]] = True
    carries: Bool = kernel & (multiplying | ~(has_flops & with_some[calls.of_activity]))
    return carries


def _shared(worth: Int64, carries: Bool, call: Int64, dur_ns: Int64) -> Int64:
    """Share the work of each call among the activities that carry it, by their time; nothing is lost."""
    shares = np.zeros(worth.size, dtype=np.int64)
    rows = np.flatnonzero(carries)
    order = rows[np.argsort(call[rows], kind="stable")]
    first = np.flatnonzero(np.diff(call[order], prepend=-2))
    if not first.size:
        return shares
    count = np.diff(np.append(first, order.size))
    time = np.maximum(dur_ns[order], 1).astype(np.float64)
    total = np.repeat(np.add.reduceat(time, first), count)
    part = np.floor(worth[order] * (time / total)).astype(np.int64)
    part[first] += worth[order[first]] - np.add.reduceat(part, first)
    shares[order] = part
    return shares


def _recorded_bytes(tree: Tree, gpu: Activities) -> Int64:
    """Bytes between the GPU and its memory of copies and memsets; -1 where not recorded, and of kernels."""
    table = tree.trace.gpu
    within = np.array([use.direction == DIRECTIONS.index("dtod") for use in gpu.uses], dtype=bool)
    both_ways = gpu.of_uses(within) & (gpu.kind == MEMCPY)
    moved = np.where(both_ways, 2 * table.bytes, table.bytes)
    return np.where((gpu.kind == KERNEL) | (table.bytes < 0), _UNKNOWN, moved)


def _peaks(gpu: Activities, calls: OpCalls, of_call: _OfCall, computing: Bool, model: Gpu | None) -> Float64:
    """Look up the peak of each distinct use and format."""
    peaks = np.full(gpu.op.size, np.nan)
    rows = np.flatnonzero(computing)
    if model is None or not rows.size:
        return peaks
    pairs, code = np.unique(gpu.use[rows] * len(calls.works) + of_call.work[rows], return_inverse=True)
    found = []
    for use, number in (divmod(pair, len(calls.works)) for pair in pairs.tolist()):
        work = calls.works[number]
        known = peak_flops(model, gpu.uses[use].identity, work.dtype) if isinstance(work, Work) else None
        found.append(np.nan if known is None else known)
    peaks[rows] = np.array(found)[code.reshape(-1)]
    return peaks


def _reasons(tree: Tree, gpu: Activities, calls: OpCalls, of_call: _OfCall) -> tuple[Int64, tuple[str, ...]]:
    """Say for each activity why its work would not be known."""
    lacks = [one if isinstance(one, str) else _partly(one) for one in calls.works]
    launch = tree.launch[gpu.row]
    replayed = (launch != NONE) & (tree.api[launch] == Api.GRAPH)
    outside = tree.link[gpu.row] == Link.OUTSIDE_WINDOW
    other = len(lacks) + np.select([replayed, outside], [0, 1], 2)
    return np.where(of_call.work != NONE, of_call.work, other), (*lacks, REPLAY, OUTSIDE, NO_OP)


def _partly(work: Work) -> str:
    return "whether attention is causal, or in which window, was not recorded" if work.flops is None else ""
