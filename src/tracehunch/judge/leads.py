"""Whether the ops that somebody named lead a scope by GPU time (host time on a CPU), in their order.

People name the op they called (``aten::matmul``, ``softmax``), traces launch kernels from the op inside it
(``aten::bmm``, ``aten::_softmax``). So time is summed anew under the claimed names: a GPU activity counts for
the innermost claimed op around its launch, else for the op that launched it; on a CPU an op's time counts for
the innermost claimed op around it, else for the op that the program called.
"""

from collections import Counter
from collections.abc import Sequence
from typing import cast

import numpy as np

from tracehunch.facts.activities import called_ops
from tracehunch.facts.model import Fact
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE, Scope, Tree
from tracehunch.tree.names import names_that


def ops_lead(claimed: Sequence[str], fact: Fact, scope: Scope, tree: Tree) -> bool:
    """Whether these ops have the most time, in this order; without any time, whether they lead the fact."""
    wanted = [plain_name(op) for op in claimed]
    on_gpu = any(len(call.gpu) for call in scope.calls)
    if not on_gpu and not any(len(call.ops) for call in scope.calls):
        seen = (fact.value,) if isinstance(fact.value, str) else cast("tuple[str, ...]", fact.value)
        return [plain_name(op) for op in seen[: len(wanted)]] == wanted
    time_ns = _time_by_op(wanted, scope, tree) if on_gpu else _host_time_by_op(wanted, scope, tree)
    leading = sorted(
        time_ns, key=lambda op: (-time_ns[op], wanted.index(op) if op in wanted else len(wanted))
    )
    return leading[: len(wanted)] == wanted


def plain_name(op: str) -> str:
    """Return an op's name as people say it: ``aten::_softmax`` and ``softmax_`` are both ``softmax``."""
    return op.rpartition("::")[2].strip("_").lower()


def _time_by_op(wanted: Sequence[str], scope: Scope, tree: Tree) -> Counter[str]:
    """GPU time over all calls under the claimed names and, for the rest, under the launching ops."""
    trace = tree.trace
    rows = np.concatenate([call.gpu for call in scope.calls])
    time_ns: Counter[str] = Counter()
    labels: dict[int, str] = {}
    for row, op in zip(rows.tolist(), tree.op[rows].tolist(), strict=True):
        if op not in labels:
            labels[op] = _label(op, wanted, tree)
        duration = int(trace.dur_ns[row])
        time_ns[labels[op]] += 0 if duration == UNKNOWN_NS else duration
    return time_ns


def _host_time_by_op(wanted: Sequence[str], scope: Scope, tree: Tree) -> Counter[str]:
    """Host time over all calls: of claimed ops and of those that the program called, without the others."""
    trace = tree.trace
    ops = np.unique(np.concatenate([call.ops for call in scope.calls])).astype(np.int64)
    claimed = names_that(trace, lambda name: plain_name(name) in wanted)[trace.name[ops]]
    counted = ops[claimed | (called_ops(tree, ops) == ops)]
    durations = trace.dur_ns[counted]
    spent = np.where(durations == UNKNOWN_NS, 0, durations)
    own = spent.copy()
    above = _nearest(tree, counted)
    np.subtract.at(own, above[above != NONE], spent[above != NONE])
    time_ns: Counter[str] = Counter()
    for row, time in zip(counted.tolist(), own.tolist(), strict=True):
        time_ns[plain_name(trace.name_of(row))] += time
    return time_ns


def _nearest(tree: Tree, rows: Int64) -> Int64:
    """Return for each of some ops, in order, the position of the innermost of them around it, else NONE."""
    found = np.full(rows.size, NONE, dtype=np.int64)
    at = _op_above(tree, rows)
    while (rising := (at != NONE) & (found == NONE)).any():
        place = np.minimum(np.searchsorted(rows, at), rows.size - 1)
        there = rising & (rows[place] == at)
        found[there] = place[there]
        at = np.where(rising & ~there, _op_above(tree, at), NONE)
    return found


def _op_above(tree: Tree, rows: Int64) -> Int64:
    """Innermost op around each op; NONE at the top."""
    parent = np.where(rows == NONE, NONE, tree.parent[np.maximum(rows, 0)]).astype(np.int64)
    above: Int64 = np.where(parent == NONE, NONE, tree.op[np.maximum(parent, 0)]).astype(np.int64)
    return above


def _label(op: int, wanted: Sequence[str], tree: Tree) -> str:
    if op == NONE:
        return ""
    around = [row for row in (op, *tree.ancestors(op)) if tree.trace.cat[row] == Cat.CPU_OP]
    names = [plain_name(tree.trace.name_of(row)) for row in around]
    return next((name for name in names if name in wanted), names[0])
