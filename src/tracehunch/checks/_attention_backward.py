"""The GPU activities of autograd that belong to attention by hand."""

from collections.abc import Sequence

import numpy as np

from tracehunch.checks._ancestry import called_op, enclosing
from tracehunch.checks._attention_work import ByHand
from tracehunch.facts.model import Facts
from tracehunch.trace.model import Int64
from tracehunch.tree import NONE, Link
from tracehunch.tree.names import ENGINE_PREFIX


def backward_rows(facts: Facts, by_hand: Sequence[ByHand]) -> list[Int64]:
    """For each attention the GPU rows that autograd launched for its ops; none in a CPU trace."""
    tree = facts.tree
    nodes = np.array(sorted(tree.backward_of), dtype=np.int64)
    rows = tree.trace.gpu.row.astype(np.int64)
    rows = rows[(tree.link[rows] == Link.LINKED) & tree.engine[np.maximum(tree.launch[rows], 0)]]
    if not nodes.size or not rows.size or not by_hand:
        return [np.empty(0, dtype=np.int64) for _ in by_hand]
    owner = np.full(len(tree.trace), NONE, dtype=np.int64)  # of the ops that the program called
    for number, one in enumerate(by_hand):
        owner[one.called[one.called != NONE]] = number
    forward = np.array([tree.backward_of[int(node)] for node in nodes], dtype=np.int64)
    above = called_op(tree, forward)
    above = np.where(above == NONE, forward, above)
    of_node = np.full(len(tree.trace), NONE, dtype=np.int64)
    of_node[nodes] = owner[above]
    node = enclosing(tree, rows, lambda name: name.startswith(ENGINE_PREFIX))
    mine = np.where(node == NONE, NONE, of_node[node])
    return [rows[mine == number] for number in range(len(by_hand))]
