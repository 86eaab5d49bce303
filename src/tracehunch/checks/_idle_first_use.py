"""What the host does for the first time, and never again: loading code, and setting up libraries."""

from typing import Final

import numpy as np

from tracehunch.checks._idle_rows import Bool, calls, is_loading_code, is_the_profilers, launched, named
from tracehunch.checks.cpu_plan_cost import has_plans
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64
from tracehunch.tree import Api, Tree
from tracehunch.tree.keys import distinct

_LONG_LAUNCH_NS: Final = 100_000
_LONG_OP_NS: Final = 1_000_000
_PLAN_NS: Final = 400_000
_TIMES_TYPICAL: Final = 10


def first_uses(tree: Tree, seen_through: Bool) -> Bool:
    """Mask of the calls that load code, and of what took long when it was called first: launches and ops.

    ``seen_through``: mask of the calls in which the host waited for the GPU or for a copy.
    """
    loading = named(tree, is_loading_code)
    found = calls(tree) & loading
    found[_first_launches(tree)] = True
    loading &= calls(tree) | (tree.trace.cat == Cat.OVERHEAD)
    found[_first_ops(tree, loading, seen_through)] = True
    return found


def _first_launches(tree: Tree) -> Int64:
    """Find launches of a kernel not seen before that took much longer than others do."""
    trace = tree.trace
    kernels: Int64 = tree.launches[tree.api[tree.launches] == Api.KERNEL]
    if not kernels.size:
        return kernels
    rows, launch = launched(tree)
    order = np.argsort(trace.start_ns[launch], kind="stable")
    _, first = np.unique(trace.name[rows[order]], return_index=True)
    is_kernel = np.zeros(len(trace), dtype=bool)
    is_kernel[kernels] = True
    candidates = distinct(launch[order[first]])
    candidates = candidates[is_kernel[candidates]]
    least = max(_LONG_LAUNCH_NS, _TIMES_TYPICAL * int(np.median(trace.dur_ns[kernels])))
    long: Int64 = candidates[trace.dur_ns[candidates] >= least]
    return long


def _first_ops(tree: Tree, loading: Bool, seen_through: Bool) -> Int64:
    """Find ops that launch work and took much longer in their first call than in later ones.

    If there is no later one, code must have been loaded in it. Plans that a library builds are another
    matter, for they come back with every shape.
    """
    trace = tree.trace
    ops = tree.ops[(trace.start_ns[tree.ops] != UNKNOWN_NS) & named(tree, _of_pytorch, tree.ops)]
    long = np.unique(trace.name[ops[trace.dur_ns[ops] >= _LONG_OP_NS]])
    found = [row for name in long.tolist() for row in _first(tree, ops, name, loading, seen_through)]
    return np.array(found, dtype=np.int64)


def _of_pytorch(name: str) -> bool:
    return name.startswith("aten::")


def _first(tree: Tree, ops: Int64, name: int, loading: Bool, seen_through: Bool) -> list[int]:
    """Return the first call of an op in a list, if it is such a one; else nothing.

    Time in which it waited for the GPU, saw a copy through, or which the profiler took does not count.
    """
    trace = tree.trace
    named_so = ops[trace.name[ops] == name]
    first = int(named_so[np.argmin(trace.start_ns[named_so])])
    start, length = int(trace.start_ns[first]), int(trace.dur_ns[first])
    later = trace.dur_ns[named_so[trace.start_ns[named_so] >= start + length]]
    inside = np.flatnonzero((trace.start_ns >= start) & (trace.start_ns < start + length))
    mine = inside[trace.thread[inside] == trace.thread[first]]
    overhead = inside[trace.cat[inside] == Cat.OVERHEAD]
    others = np.r_[mine[seen_through[mine]], overhead[named(tree, is_the_profilers, overhead)]]
    busy = length - int(np.maximum(trace.dur_ns[others], 0).sum())
    typical = float(np.median(later)) if later.size else 0.0
    if busy < max(_LONG_OP_NS, _TIMES_TYPICAL * typical):
        return []
    planning = mine[named(tree, has_plans, mine)]
    plans = (trace.cat[planning] == Cat.CPU_OP) & (trace.dur_ns[planning] >= _PLAN_NS)
    if plans.any() or not np.isin(mine, tree.launches).any():
        return []
    return [first] if later.size or loading[inside].any() else []
