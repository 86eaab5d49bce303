"""Counts over the whole file."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from tracehunch.facts.activities import KERNEL
from tracehunch.facts.context import Context
from tracehunch.facts.times import device_busy_ns
from tracehunch.trace.model import UNKNOWN_NS, Cat
from tracehunch.tree import NONE, Api, Link
from tracehunch.tree.apis import LAUNCHES
from tracehunch.tree.names import is_step


def trace_counts(context: Context) -> Mapping[str, object]:
    """Return the JSON's ``trace.counts``; ``rank`` and ``world_size`` only where the file tells them."""
    trace, tree, gpu = context.trace, context.tree, context.gpu
    link = tree.link[gpu.row]
    outside = link == Link.OUTSIDE_WINDOW
    lost = (gpu.op == NONE) & (tree.launch[gpu.row] == NONE)
    carries = _carries(context)
    counts: dict[str, object] = {
        "n_events": trace.n_events,
        "n_complete": len(trace),
        "n_kernels": int(np.count_nonzero(gpu.kind == KERNEL)),
        "n_gpu_ops": int(gpu.row.size),
        "kernel_sum_us": _us(gpu.dur_ns[gpu.kind == KERNEL].sum()),
        "gpu_busy_us": {str(device): _us(length) for device, length in device_busy_ns(gpu).items()},
        "n_steps": int(np.count_nonzero(is_step(trace))),
        "n_cpu_ops": int(tree.ops.size),
        "n_launches": int(np.count_nonzero(np.isin(tree.api[tree.launches], LAUNCHES) | carries)),
        "n_orphan_gpu_ops": int(np.count_nonzero(outside)),
        "n_launches_without_gpu_op": int(np.count_nonzero(~carries)),
        "n_bad_dur": int(np.count_nonzero(trace.dur_ns == UNKNOWN_NS)),
        "n_overhead": int(trace.rows(Cat.OVERHEAD).size),
        "gpu_activities": int(gpu.row.size),
        "outside_window": int(np.count_nonzero(outside)),
        "outside_window_us": _us(gpu.dur_ns[outside].sum()),
        "unattributed_gpu_time_us": _us(gpu.dur_ns[lost & ~outside].sum()),
        "n_graph_launches": int(np.count_nonzero(tree.api[tree.launches] == Api.GRAPH)),
    }
    known = {"rank": _rank(context), "world_size": trace.header.world_size}
    return counts | {name: value for name, value in known.items() if value is not None}


def _carries(context: Context) -> NDArray[np.bool_]:
    """Tell which launches put an activity on the GPU, or may have where several share a correlation."""
    trace, tree, gpu = context.trace, context.tree, context.gpu.row
    launch = tree.launch[gpu]
    ambiguous = trace.correlation[gpu[tree.link[gpu] == Link.AMBIGUOUS]]
    return np.asarray(
        np.isin(tree.launches, launch[launch != NONE]) | np.isin(trace.correlation[tree.launches], ambiguous)
    )


def _rank(context: Context) -> int | None:
    header = context.trace.header
    return header.rank_in_name if header.rank is None else header.rank


def _us(ns: int) -> float:
    return round(int(ns) / 1000, 3)
