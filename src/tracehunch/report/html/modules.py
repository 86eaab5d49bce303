"""The module that an event belongs to, where modules were recorded (``with_modules`` or ``with_stack``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.tree.modules import module_calls
from tracehunch.tree.nesting import NONE, nearest, nest
from tracehunch.tree.timeline import Timeline
from tracehunch.units import printable

if TYPE_CHECKING:
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Tree

_BACKWARD = "backward of "


def modules_of(tree: Tree, rows: Int64) -> tuple[Int64, list[str]]:
    """Return for each row the number of its module's path, and the paths; the first is "", for none.

    A row of the host belongs to the innermost module around it on its thread, one of autograd to that of the
    forward op that it differentiates, an activity of a GPU to that of its launch.
    """
    calls, paths = module_calls(tree.trace)
    if not calls.size or not rows.size:
        return np.zeros(rows.size, dtype=np.int64), [""]
    launch = tree.launch[rows].astype(np.int64)
    anchor = np.where(launch == NONE, rows, launch)
    found = _innermost(tree, calls, anchor)
    missing = np.flatnonzero(found == NONE)
    forward = _forward_of(tree, anchor[missing])
    known = forward != NONE
    backward = np.full(rows.size, NONE, dtype=np.int64)
    backward[missing[known]] = _innermost(tree, calls, forward[known])
    shown = [printable(path) for path in paths]
    words = ["", *shown, *(f"{_BACKWARD}{path}" for path in shown)]
    distinct = {word: at for at, word in reversed(list(enumerate(words)))}
    same = np.array([distinct[word] for word in words], dtype=np.int64)
    number = np.where(found != NONE, found + 1, np.where(backward != NONE, backward + 1 + len(paths), 0))
    used, compact = np.unique(np.append(0, same[number]), return_inverse=True)
    return compact[1:].astype(np.int64), [words[at] for at in used.tolist()]


def _innermost(tree: Tree, calls: Int64, rows: Int64) -> Int64:
    """Return the position among the calls of the one that each row starts in; NONE outside all."""
    trace = tree.trace
    threads, starts, ends = trace.thread[calls].astype(np.int64), trace.start_ns[calls], trace.end_ns()[calls]
    nesting = nest(threads, starts, ends, np.zeros(calls.size))
    order = nesting.order
    timeline = Timeline(np.arange(order.size, dtype=np.int64), threads[order], starts[order])
    start = trace.start_ns[rows]
    group = trace.thread[rows].astype(np.int64)
    first, last = timeline.slices(group, np.full(rows.size, UNKNOWN_NS + 1), start + 1)
    at = np.where(last > first, timeline.rows[np.maximum(last - 1, 0)], NONE)
    while (left := np.flatnonzero((at != NONE) & (ends[order][at] < start))).size:
        at[left] = nesting.parent[at[left]]
    return np.where(at == NONE, NONE, order[at])


def _forward_of(tree: Tree, rows: Int64) -> Int64:
    """Return the forward op that the node of autograd around each row differentiates; NONE if none."""
    nodes = np.array(sorted(tree.backward_of), dtype=np.int64)
    if not nodes.size:
        return np.full(rows.size, NONE, dtype=np.int64)
    is_node = np.zeros(len(tree.trace), dtype=bool)
    is_node[nodes] = True
    node = nearest(tree.parent.astype(np.int64), is_node)[rows]
    forward = np.array([tree.backward_of[int(one)] for one in nodes], dtype=np.int64)
    at = np.minimum(np.searchsorted(nodes, node), nodes.size - 1)
    return np.where(node == NONE, NONE, forward[at])
