"""The calls of scaled_dot_product_attention that ran as PyTorch's math composition."""

from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._activities import leaf_ops, on_cpu_alone, on_gpu
from tracehunch.checks._ancestry import child_under, enclosing
from tracehunch.checks._once import once
from tracehunch.checks._scopes import durations_us, place, place_ops
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Cat, Int64
from tracehunch.tree import NONE, Link, Tree

MATH_OP: Final = "aten::_scaled_dot_product_attention_math"
SDPA_BACKEND: Final = "aten::_scaled_dot_product_"
"""What the names of the ops of all SDPA backends begin with."""
_CAST: Final = "aten::to"


@dataclass(frozen=True, slots=True)
class MathCalls:
    """What the math fallback did in one scope: GPU activities, in a CPU trace leaf ops."""

    scope: ScopeFacts
    rows: Int64  # activities
    ops: Int64  # for each activity the math op that it belongs to
    parts: Int64  # for each activity the op directly inside the math op
    on_gpu: bool

    @property
    def calls(self) -> Int64:
        """The math ops, one row each."""
        return np.unique(self.ops)

    def named(self, tree: Tree, names: frozenset[str]) -> Self:
        """Only the activities whose part has one of these names."""
        trace = tree.trace
        keep = np.fromiter(
            (trace.name_of(int(part)) in names for part in self.parts), dtype=bool, count=self.parts.size
        )
        return replace(self, rows=self.rows[keep], ops=self.ops[keep], parts=self.parts[keep])


@once
def _chosen(facts: Facts) -> tuple[Int64, Int64, Int64]:
    """Return the activities inside math ops, those ops, and the ops directly inside them."""
    tree, gpu = facts.tree, on_gpu(facts)
    rows = tree.trace.gpu.row.astype(np.int64) if gpu else leaf_ops(facts, lambda _: True)
    rows = rows[tree.link[rows] == Link.LINKED] if gpu else rows
    ops = enclosing(tree, rows, MATH_OP.__eq__)
    rows, ops = rows[ops != NONE], ops[ops != NONE]
    return rows, ops, child_under(tree, rows, ops)


def math_calls(facts: Facts) -> list[MathCalls]:
    """Find the math fallback's activities by scope; empty where none ran (or launched anything recorded)."""
    if MATH_OP not in facts.tree.trace.names:
        return []
    gpu = on_gpu(facts)
    if not gpu and not on_cpu_alone(facts):
        return []
    rows, ops, parts = _chosen(facts)
    where = place(facts) if gpu else place_ops(facts)
    found = []
    for scope, _, at in where.positions(rows):
        found.append(MathCalls(scope, rows[at], ops[at], parts[at], gpu))
    return found


def times_us(tree: Tree, math: MathCalls) -> NDArray[np.float64]:
    """Return the time of each math call: of its GPU activities, on a CPU of the op itself."""
    if not math.on_gpu:
        return durations_us(tree.trace, math.calls)
    _, which = np.unique(math.ops, return_inverse=True)
    return np.bincount(which, weights=durations_us(tree.trace, math.rows)).astype(np.float64)


def upcasts(tree: Tree, math: MathCalls) -> MathCalls:
    """Find the casts directly inside the math op: 16-bit inputs to float32, and the result back."""
    casts = math.named(tree, frozenset({_CAST, "aten::_to_copy"}))
    kernels = (
        tree.trace.cat[casts.rows] == Cat.KERNEL if math.on_gpu else np.ones(casts.rows.size, dtype=bool)
    )
    return replace(casts, rows=casts.rows[kernels], ops=casts.ops[kernels], parts=casts.parts[kernels])
