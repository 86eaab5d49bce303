"""Kernels of collectives and the calls that launched them, where one is not simply the other.

A kernel's own call is the ``record_param_comms`` around its launch. Calls that are coalesced (``batch_isend_
irecv``, a coalescing manager) launch nothing themselves: their kernels are launched at the end of the group,
by no call, and belong to all calls of their thread since the last that had a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.comms import OP
from tracehunch.trace.model import UNKNOWN_NS, Cat
from tracehunch.tree import NONE
from tracehunch.tree.names import names_that, step_number

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree

_OPS: Final = (
    "c10d::",
    "_c10d_functional::",
    "c10d_functional::",
    "_c10d_functional_autograd::",
    "symm_mem::",
)
_ANNOTATIONS: Final = ("nccl:", "rccl:", "xccl:", "gloo:", "ucc:", "mpi:")
_MACHINERY: Final = (*_OPS, *_ANNOTATIONS)


@dataclass(frozen=True, slots=True)
class Launched:
    """One entry per kernel: rows of the host around its launch, NONE where there is none."""

    row: Int64
    launch: Int64
    own: Int64  # the record_param_comms around it
    library: Int64  # the op or annotation of c10d around it, the outermost of those that name a collective
    caller: Int64  # the innermost op or annotation around all of those


def launched(tree: Tree, rows: Int64) -> Launched:
    """Find what is around the launches of GPU rows."""
    launch = tree.launch[rows].astype(np.int64)
    own = _above(tree, launch, _is_comms)
    around = _around(tree, launch, _is_machinery)
    return Launched(rows, launch, own, around[0], around[1])


def _is_comms(name: str) -> bool:
    return name == OP


def _is_machinery(name: str) -> bool:
    return name == OP or name.startswith(_MACHINERY)


def _is_step(name: str) -> bool:
    return step_number(name) >= 0


def _above(tree: Tree, rows: Int64, wanted: Callable[[str], bool]) -> Int64:
    """For each row the nearest one around it whose name is wanted."""
    is_wanted = names_that(tree.trace, wanted)
    found = rows.copy()
    rising = np.flatnonzero(found != NONE)
    while rising.size:
        found[rising] = tree.parent[found[rising]]
        rising = rising[found[rising] != NONE]
        rising = rising[~is_wanted[tree.trace.name[found[rising]]]]
    return found


def _around(tree: Tree, rows: Int64, machinery: Callable[[str], bool]) -> tuple[Int64, Int64]:
    """For each row the outermost row of the library around it, and the innermost op or annotation beyond."""
    trace = tree.trace
    is_library, is_step = names_that(trace, machinery), names_that(trace, _is_step)
    names_it = is_library & ~names_that(trace, _is_comms)
    named = np.isin(trace.cat, (Cat.CPU_OP, Cat.USER_ANNOTATION))
    library, caller = np.full(rows.size, NONE, dtype=np.int64), rows.copy()
    rising = np.flatnonzero(caller != NONE)
    while rising.size:
        caller[rising] = tree.parent[caller[rising]]
        rising = rising[caller[rising] != NONE]
        at = caller[rising]
        of_library = is_library[trace.name[at]]
        telling = names_it[trace.name[at]]
        library[rising[telling]] = at[telling]
        rising = rising[of_library | ~named[at] | is_step[trace.name[at]]]
    return library, caller


def coalesced(tree: Tree, kernels: Launched, wanted: Int64) -> dict[int, tuple[int, ...]]:
    """For each of the wanted entries the calls that its kernel does the work of; none where there are none.

    ``wanted`` are kernels of a library of collectives that have no call of their own.
    """
    trace = tree.trace
    calls = np.flatnonzero(names_that(trace, _is_comms)[trace.name] & (trace.cat == Cat.CPU_OP))
    calls = calls[trace.start_ns[calls] != UNKNOWN_NS]
    calls = calls[np.lexsort((trace.start_ns[calls], trace.thread[calls]))]
    has_kernel = np.isin(calls, kernels.own)
    found = {}
    for thread in np.unique(trace.thread[kernels.launch[wanted]]).tolist():
        mine = wanted[trace.thread[kernels.launch[wanted]] == thread]
        of_thread = trace.thread[calls] == thread
        found.update(_of_thread(tree, kernels, mine, (calls[of_thread], has_kernel[of_thread])))
    return found


def _of_thread(
    tree: Tree, kernels: Launched, wanted: Int64, of_thread: tuple[Int64, Int64]
) -> dict[int, tuple[int, ...]]:
    start = tree.trace.start_ns
    calls, has_kernel = of_thread
    launches = start[kernels.launch[wanted]]
    last = np.searchsorted(start[calls], launches, "left")
    own = np.r_[0, np.flatnonzero(has_kernel) + 1]
    floor = own[np.searchsorted(own, last, "right") - 1]
    found: dict[int, tuple[int, ...]] = {}
    done, pending = 0, ()
    for at in np.argsort(launches, kind="stable").tolist():
        first, stop = max(int(floor[at]), done), int(last[at])
        if stop > first:  # else: one more kernel of the same group
            done, pending = stop, tuple(calls[first:stop].tolist())
        elif floor[at] >= done:
            pending = ()
        if pending:
            found[int(wanted[at])] = pending
    return found
