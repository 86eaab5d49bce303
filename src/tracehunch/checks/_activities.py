"""Selecting GPU activities by what their names say."""

from collections.abc import Callable

import numpy as np

from tracehunch.checks._once import once
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.trace.model import LAUNCH_CATS, Cat, Int32, Int64
from tracehunch.tree import NONE, Link
from tracehunch.tree.names import names_that


@once
def uses(facts: Facts) -> tuple[KernelUse, ...]:
    """Return every distinct GPU activity of the whole trace."""
    return next((scope.kernels for scope in facts.scopes if scope.scope.kind == "whole"), ())


def launched(facts: Facts, wanted: Callable[[KernelUse], bool]) -> Int64:
    """Find the GPU rows, ascending, of activities that satisfy ``wanted`` and whose launch is recorded."""
    chosen = np.array([wanted(use) for use in uses(facts)], dtype=bool)
    rows, use = _linked(facts)
    return rows[chosen[use]] if chosen.size else rows


@once
def _linked(facts: Facts) -> tuple[Int64, Int64]:
    """GPU rows whose launch is recorded, ascending, and which of ``uses`` each is."""
    use = np.full(len(facts.tree.trace), NONE, dtype=np.int64)
    for number, one in enumerate(uses(facts)):
        use[np.array(one.rows, dtype=np.int64)] = number
    use[facts.tree.link != Link.LINKED] = NONE
    rows = np.flatnonzero(use != NONE)
    return rows, use[rows]


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
    return _positions(facts)[rows].astype(np.int64)


@once
def _positions(facts: Facts) -> Int32:
    table = facts.tree.trace.gpu.row
    found = np.full(len(facts.tree.trace), NONE, dtype=np.int32)
    found[table] = np.arange(table.size)
    return found
