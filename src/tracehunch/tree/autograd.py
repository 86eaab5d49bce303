"""Autograd: the threads its engine runs on, what belongs to it, and the forward op of each backward node."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tracehunch.trace.model import Cat, Int64, Trace
from tracehunch.tree.host import Host
from tracehunch.tree.nesting import NONE


@dataclass(frozen=True, slots=True)
class Autograd:
    """``threads`` run the engine; ``dedicated`` ones do nothing else.

    A thread that also runs the forward (a CPU's backward, or the CPU part of a GPU's) belongs to autograd
    only where the engine's rows are.
    """

    threads: frozenset[int]
    dedicated: frozenset[int]
    inside: NDArray[np.bool_]  # rows of the trace that belong to the engine


def autograd(trace: Trace, host: Host) -> Autograd:
    """Find autograd's threads and rows."""
    n = len(trace)
    nodes = np.flatnonzero(host.engine)
    if not nodes.size:
        return Autograd(frozenset(), frozenset(), np.zeros(n, dtype=bool))
    threads = np.unique(trace.thread[nodes])
    in_engine = host.nearest(host.engine, n) != NONE
    on_threads = np.isin(trace.thread, threads)
    forward = host.ops & on_threads & (trace.sequence >= 0) & ~in_engine
    annotated = host.nearest((trace.cat == Cat.USER_ANNOTATION) | host.steps, n)[nodes] != NONE
    mixed = np.union1d(trace.thread[forward], trace.thread[nodes[annotated]])
    dedicated = np.setdiff1d(threads, mixed)
    inside = in_engine | np.isin(trace.thread, dedicated)
    return Autograd(frozenset(threads.tolist()), frozenset(dedicated.tolist()), inside)


def backward_links(trace: Trace, host: Host, inside: NDArray[np.bool_]) -> Mapping[int, int]:
    """Backward node -> the forward op that made it.

    Several forward ops carry one sequence number, since it grows only when a node of the graph is made: the
    last outermost one made it. Numbers count per forward thread, which the backward knows by another id.
    """
    nodes = np.flatnonzero(host.engine & (trace.sequence >= 0))
    forward = np.flatnonzero(host.ops & (trace.sequence >= 0) & ~inside)
    if not nodes.size or not forward.size:
        return {}
    outer = host.parent[forward]
    above = np.where(outer == NONE, NONE, host.op[outer])
    outermost = (above == NONE) | (trace.sequence[above] != trace.sequence[forward])
    forward = forward[outermost]
    links: dict[int, int] = {}
    for number in np.unique(trace.forward_thread[nodes]).tolist():
        mine = nodes[trace.forward_thread[nodes] == number]
        source = _made_by(trace, forward, mine)
        known = source != NONE
        links.update(zip(mine[known].tolist(), source[known].tolist(), strict=True))
    return links


def _made_by(trace: Trace, forward: Int64, nodes: Int64) -> Int64:
    """Take the forward ops of the thread whose numbers fit the nodes best."""
    best = np.full(nodes.size, NONE, dtype=np.int64)
    for thread in np.unique(trace.thread[forward]).tolist():
        found = _last_before(trace, forward[trace.thread[forward] == thread], nodes)
        if np.count_nonzero(found != NONE) > np.count_nonzero(best != NONE):
            best = found
    return best


def _last_before(trace: Trace, forward: Int64, nodes: Int64) -> Int64:
    """Last forward op of the node's number that starts before the node (another process counts anew)."""
    order = np.lexsort((trace.start_ns[forward], trace.sequence[forward]))
    ordered = forward[order]
    keys = trace.sequence[ordered]
    at = np.searchsorted(keys, trace.sequence[nodes], "right") - 1
    ok = (at >= 0) & (keys[np.maximum(at, 0)] == trace.sequence[nodes])
    ok &= trace.start_ns[ordered[np.maximum(at, 0)]] <= trace.start_ns[nodes]
    return np.where(ok, ordered[np.maximum(at, 0)], NONE)
