"""Whether the ops that somebody named lead a scope by GPU time, in their order.

People name the op they called (``aten::matmul``, ``softmax``), traces launch kernels from the op inside it
(``aten::bmm``, ``aten::_softmax``). So GPU time is summed anew under the claimed names: an activity counts
for the innermost claimed op around its launch, else for the op that launched it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import cast

import numpy as np

from tracehunch.facts.model import Fact
from tracehunch.trace.model import UNKNOWN_NS, Cat
from tracehunch.tree import NONE, Scope, Tree


def ops_lead(claimed: Sequence[str], fact: Fact, scope: Scope, tree: Tree) -> bool:
    """Whether these ops have the most GPU time, in this order; without any, whether they lead the fact."""
    wanted = [plain_name(op) for op in claimed]
    if not any(len(call.gpu) for call in scope.calls):
        seen = (fact.value,) if isinstance(fact.value, str) else cast("tuple[str, ...]", fact.value)
        return [plain_name(op) for op in seen[: len(wanted)]] == wanted
    time_ns = _time_by_op(wanted, scope, tree)
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


def _label(op: int, wanted: Sequence[str], tree: Tree) -> str:
    if op == NONE:
        return ""
    around = [row for row in (op, *tree.ancestors(op)) if tree.trace.cat[row] == Cat.CPU_OP]
    names = [plain_name(tree.trace.name_of(row)) for row in around]
    return next((name for name in names if name in wanted), names[0])
