"""Whether the ops that somebody named lead a scope by GPU time (host time on a CPU), in their order.

People name the op they called (``aten::matmul``, ``softmax``), traces launch kernels from the op inside it
(``aten::bmm``, ``aten::_softmax``). So time is summed anew under the claimed names: a GPU activity counts for
the innermost claimed op around its launch, else for the op that launched it; on a CPU an op's time counts for
the innermost claimed op around it, else for the op that the program called. Where that does not bear a claim
out that names ops inside those, it is held against the ops that tables of kernels name.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, cast

import numpy as np

from tracehunch.facts.activities import called_ops
from tracehunch.facts.model import Fact
from tracehunch.trace.model import UNKNOWN_NS, Cat, Int64
from tracehunch.tree import NONE, Scope, Tree
from tracehunch.tree.names import names_that

SHOWN: Final = 10
"""Ops that are told at most."""


def ops_lead(claimed: Sequence[str], fact: Fact, scope: Scope, tree: Tree) -> tuple[Fact, bool]:
    """Return what leads, and whether these ops have the most time, in this order.

    Claimed ops that run inside those that the program called (``aten::addmm`` in ``aten::linear``) are held
    against the ops that launched (on a CPU: against the time of each op without the ops inside it), and those
    are then what is seen. Without any time it matters whether the claimed ops lead the fact.
    """
    wanted = [plain_name(op) for op in claimed]
    on_gpu = any(len(call.gpu) for call in scope.calls)
    seen = (fact.value,) if isinstance(fact.value, str) else cast("tuple[str, ...]", fact.value)
    if not on_gpu and not any(len(call.ops) for call in scope.calls):
        return fact, [plain_name(op) for op in seen[: len(wanted)]] == wanted
    if _lead(wanted, _time_by_op(wanted, scope, tree) if on_gpu else _host_time_by_op(wanted, scope, tree)):
        return fact, True
    inner = _launching(scope, tree) if on_gpu else _alone(scope, tree)
    names = {plain_name(op) for op in inner}
    if not names.issuperset(wanted) or {plain_name(op) for op in seen}.issuperset(wanted):
        return fact, False
    by_plain_name: Counter[str] = Counter()
    for op, time in inner.items():
        by_plain_name[plain_name(op)] += time
    leading = sorted(inner, key=lambda op: (-inner[op], op))[:SHOWN]
    return replace(fact, value=tuple(leading)), _lead(wanted, by_plain_name)


def _lead(wanted: Sequence[str], time_ns: Mapping[str, int]) -> bool:
    """Tell whether some ops lead all in this order; of equal times the wanted come first."""
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
    trace, ops = tree.trace, _ops_of(scope)
    claimed = names_that(trace, lambda name: plain_name(name) in wanted)[trace.name[ops]]
    time_ns: Counter[str] = Counter()
    for op, time in _time_alone(ops[claimed | (called_ops(tree, ops) == ops)], tree).items():
        time_ns[plain_name(op)] += time
    return time_ns


def _launching(scope: Scope, tree: Tree) -> Counter[str]:
    """GPU time over all calls under the innermost ops around the launches."""
    trace = tree.trace
    rows = np.concatenate([call.gpu for call in scope.calls])
    time_ns: Counter[str] = Counter()
    for op, duration in zip(tree.op[rows].tolist(), trace.dur_ns[rows].tolist(), strict=True):
        if op != NONE:
            time_ns[trace.name_of(op)] += 0 if duration == UNKNOWN_NS else duration
    return time_ns


def _alone(scope: Scope, tree: Tree) -> Counter[str]:
    """Host time over all calls of each op without the ops inside it."""
    return _time_alone(_ops_of(scope), tree)


def _ops_of(scope: Scope) -> Int64:
    return np.unique(np.concatenate([call.ops for call in scope.calls])).astype(np.int64)


def _time_alone(ops: Int64, tree: Tree) -> Counter[str]:
    """Host time of some ops by name, each without those of them that are inside it."""
    trace = tree.trace
    spent = np.where(trace.dur_ns[ops] == UNKNOWN_NS, 0, trace.dur_ns[ops])
    own = spent.copy()
    above = _nearest(tree, ops)
    np.subtract.at(own, above[above != NONE], spent[above != NONE])
    time_ns: Counter[str] = Counter()
    for row, time in zip(ops.tolist(), own.tolist(), strict=True):
        time_ns[trace.name_of(row)] += time
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
