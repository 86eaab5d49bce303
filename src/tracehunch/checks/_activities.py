"""Selecting GPU activities by what their names say."""

from collections.abc import Callable

import numpy as np

from tracehunch.facts.model import Facts, KernelUse
from tracehunch.trace.model import LAUNCH_CATS, Cat, Int64
from tracehunch.tree import Link
from tracehunch.tree.names import names_that


def uses(facts: Facts) -> tuple[KernelUse, ...]:
    """Return every distinct GPU activity of the whole trace."""
    return next((scope.kernels for scope in facts.scopes if scope.scope.kind == "whole"), ())


def launched(facts: Facts, wanted: Callable[[KernelUse], bool]) -> Int64:
    """Find the GPU rows, ascending, of activities that satisfy ``wanted`` and whose launch is recorded."""
    chosen = [np.asarray(use.rows, dtype=np.int64) for use in uses(facts) if wanted(use)]
    rows = np.unique(np.concatenate(chosen)) if chosen else np.empty(0, dtype=np.int64)
    linked: Int64 = rows[facts.tree.link[rows] == Link.LINKED]
    return linked


def on_gpu(facts: Facts) -> bool:
    """Tell whether the trace has any GPU activity; without, its ops did their work on the CPU."""
    return len(facts.tree.trace.gpu.row) > 0


def on_cpu_alone(facts: Facts) -> bool:
    """Tell whether the program used no GPU, as far as calls and names in the trace show."""
    trace = facts.tree.trace
    return not (
        on_gpu(facts)
        or trace.header.devices
        or trace.rows(*LAUNCH_CATS).size
        or names_that(trace, lambda name: name.startswith(("nccl:", "rccl:"))).any()
    )


def leaf_ops(facts: Facts, wanted: Callable[[str], bool]) -> Int64:
    """Find the ops without children whose name satisfies ``wanted``: a CPU trace's counterpart of kernels."""
    trace = facts.tree.trace
    hit = names_that(trace, wanted)
    return np.flatnonzero((trace.cat == Cat.CPU_OP) & (facts.tree.n_children == 0) & hit[trace.name])


def gpu_positions(facts: Facts, rows: Int64) -> Int64:
    """Find the positions of GPU rows in the GPU table."""
    table = facts.tree.trace.gpu.row
    order = np.argsort(table, kind="stable")
    return order[np.searchsorted(table, rows, sorter=order)]
