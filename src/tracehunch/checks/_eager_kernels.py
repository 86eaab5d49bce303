"""Kernels of ordinary ops where torch.compile was to fuse them, and what fusing them would save."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import launched, uses
from tracehunch.checks._ancestry import called_op
from tracehunch.checks._scopes import durations_us
from tracehunch.facts.compiled.rows import annotated, is_graph_call, is_lookup, is_region
from tracehunch.facts.compiler import innermost, is_compiler
from tracehunch.facts.model import Facts, KernelUse
from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE, Link, Tree
from tracehunch.tree.names import ENGINE_PREFIX, is_framework, names_that

_FUSIBLE: Final = frozenset({"elementwise", "reduce", "softmax", "norm"})
"""Algorithms that Inductor merges with their neighbours."""
_WRAPPERS: Final = ("AOTDispatcher", "Pregraph bytecode", "TorchDynamo")
_GENERATED: Final = "triton_"


class Place(IntEnum):
    """Where an ordinary op ran that compiled code was to hold."""

    IN_GRAPH = 0  # called by generated code: Inductor has no code of its own for it
    BETWEEN_GRAPHS = 1  # in a compiled function, outside of generated code: a graph break
    NO_GRAPH = 2  # in a compiled function of which nothing was generated: another backend
    NOT_FOUND = 3  # after a look-up that found no compiled code


@dataclass(frozen=True, slots=True)
class EagerKernels:
    """Fusible kernels of ordinary ops in compiled functions; parallel arrays, in order of launch."""

    rows: Int64
    place: Int64
    saved_us: NDArray[np.float64]  # what fusing each of them would save
    unknown: Int64  # rows of such kernels whose op was not recorded


def eager_kernels(facts: Facts) -> EagerKernels:
    """Find them in a whole trace."""
    tree = facts.tree
    none = np.empty(0, dtype=np.int64)
    if not annotated(tree, is_region).size and not annotated(tree, is_lookup).size:
        return EagerKernels(none, none, none.astype(float), none)
    rows = launched(facts, lambda use: use.kind == "kernel" and _is_fusible(use))
    rows = rows[innermost(tree, rows, _is_elsewhere) == NONE]
    op = called_op(tree, rows)
    place = _places(tree, rows)
    inside = place != NONE
    untold = inside & (op == NONE)
    chosen = inside & (op != NONE) & _pure(facts, op)
    saved = _saved_us(facts, rows[chosen])
    return EagerKernels(rows[chosen], place[chosen], saved, rows[untold])


def _is_fusible(use: KernelUse) -> bool:
    return use.identity.library == "pytorch" and use.identity.algorithm in _FUSIBLE


def _is_elsewhere(name: str) -> bool:
    """Tell what is no work of the compiled function: the compiler, and the wrappers."""
    return is_compiler(name) or name.startswith(_WRAPPERS)


def _pure(facts: Facts, op: Int64) -> NDArray[np.bool_]:
    """Tell ops of which every kernel is fusible: no sort, no product, no attention."""
    tree = facts.tree
    other = {use.name for use in uses(facts) if use.kind == "kernel" and not _is_fusible(use)}
    gpu = tree.trace.gpu.row.astype(np.int64)
    gpu = gpu[tree.link[gpu] == Link.LINKED]
    impure = np.unique(called_op(tree, gpu[names_that(tree.trace, other.__contains__)[tree.trace.name[gpu]]]))
    return ~np.isin(op, impure)


def _places(tree: Tree, rows: Int64) -> Int64:
    graph, region = innermost(tree, rows, is_graph_call), innermost(tree, rows, is_region)
    nearest = innermost(tree, rows, _is_around)
    in_graph = (nearest != NONE) & (nearest == graph)
    region = np.where(
        nearest == region, region, NONE
    )  # a backward inside belongs to whatever it goes back through
    with_graph = np.isin(region, _regions_with_graphs(tree))
    missed = _after_failed_lookup(tree, rows)
    return np.select(
        [in_graph, (region != NONE) & with_graph, region != NONE, missed],
        [Place.IN_GRAPH, Place.BETWEEN_GRAPHS, Place.NO_GRAPH, Place.NOT_FOUND],
        default=NONE,
    )


def _is_around(name: str) -> bool:
    return is_graph_call(name) or is_region(name) or name.startswith(ENGINE_PREFIX)


def _regions_with_graphs(tree: Tree) -> Int64:
    """Regions that generated code runs in, however deep."""
    found: list[Int64] = []
    around = annotated(tree, is_graph_call)
    while around.size:
        above = tree.parent[around].astype(np.int64)
        regions = innermost(tree, above[above != NONE], is_region)
        around = np.unique(regions[regions != NONE])
        found.append(around)
    return np.unique(np.concatenate(found)) if found else np.empty(0, dtype=np.int64)


def _after_failed_lookup(tree: Tree, rows: Int64) -> NDArray[np.bool_]:
    """Tell launches that follow, in the same row of the host, a look-up after which no compiled code ran."""
    trace = tree.trace
    lookups = annotated(tree, is_lookup)
    hits = annotated(tree, lambda name: is_region(name) or is_compiler(name))
    host = tree.launch[rows].astype(np.int64)
    found = np.zeros(rows.size, dtype=bool)
    if not lookups.size or not rows.size:
        return found
    every = np.concatenate([lookups, hits])
    order = np.lexsort((trace.start_ns[every], trace.thread[every]))
    every = every[order]
    is_hit = order >= lookups.size
    thread = trace.thread[every]
    key = thread.astype(np.int64)
    for index in np.unique(trace.thread[host]).tolist():
        mine = np.flatnonzero(key == index)
        if not mine.size:
            continue
        chosen = trace.thread[host] == index
        at = np.searchsorted(trace.start_ns[every[mine]], trace.start_ns[host[chosen]], "right") - 1
        last = every[mine[np.maximum(at, 0)]]
        failed = (at >= 0) & ~is_hit[mine[np.maximum(at, 0)]]
        around = tree.parent[last].astype(np.int64)
        ends = np.where(around == NONE, trace.end_ns().max(), trace.end_ns()[around])
        found[chosen] = failed & (around != NONE) & (trace.start_ns[host[chosen]] < ends)
    return found


def _annotation(tree: Tree, rows: Int64) -> Int64:
    """Innermost annotation of the user around each launch."""
    trace = tree.trace
    names = np.unique(trace.name[trace.cat == Cat.USER_ANNOTATION]).tolist()
    of_user = {trace.names[name] for name in names if not is_framework(trace.names[name])}
    return innermost(tree, rows, of_user.__contains__)


def _saved_us(facts: Facts, rows: Int64) -> NDArray[np.float64]:
    """Estimate what fusing each kernel saves: all of it beside a generated kernel, else all but the longest.

    A fused kernel takes about as long as the longest of those that it stands for, since each of them waits
    for memory. Runs end at every activity that cannot be fused.
    """
    tree = facts.tree
    trace = tree.trace
    gpu = trace.gpu.row.astype(np.int64)
    gpu = gpu[(tree.link[gpu] == Link.LINKED) & (trace.cat[gpu] == Cat.KERNEL)]
    launch = tree.launch[gpu].astype(np.int64)
    gpu = gpu[np.lexsort((trace.start_ns[launch], trace.thread[launch]))]
    generated = names_that(trace, lambda name: name.startswith(_GENERATED))[trace.name[gpu]]
    eager = np.isin(gpu, rows)
    around = _annotation(tree, gpu)
    ends = ~(eager | generated) | np.r_[True, around[1:] != around[:-1]][: gpu.size]
    run = np.cumsum(ends) * 2 + (eager | generated)
    lengths = np.where(eager, durations_us(trace, gpu), 0.0)
    code = np.unique(run, return_inverse=True)[1].reshape(-1)
    longest = np.zeros(code.max(initial=-1) + 1)
    np.maximum.at(longest, code, lengths)
    hosted = np.bincount(code, weights=generated, minlength=longest.size) > 0
    total = np.bincount(code, weights=lengths, minlength=longest.size)
    kept = np.where(hosted | (total == 0), 1.0, 1.0 - longest / np.maximum(total, 1e-9))
    by_row = dict(zip(gpu[eager].tolist(), (lengths * kept[code])[eager].tolist(), strict=True))
    return np.array([by_row[row] for row in rows.tolist()], dtype=np.float64)
