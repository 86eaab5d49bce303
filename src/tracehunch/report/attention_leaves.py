"""What the leaf ops of a forward are: on a CPU they stand for kernels, though most compute nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from tracehunch.units import plural, printable

if TYPE_CHECKING:
    from tracehunch.attention.outcome import Outcome

BOOKKEEPING: Final = frozenset(
    {
        "aten::alias",
        "aten::as_strided",
        "aten::contiguous",
        "aten::detach",
        "aten::empty",
        "aten::empty_like",
        "aten::empty_strided",
        "aten::expand",
        "aten::narrow",
        "aten::permute",
        "aten::reshape",
        "aten::_reshape_alias",
        "aten::resize_",
        "aten::resolve_conj",
        "aten::resolve_neg",
        "aten::select",
        "aten::slice",
        "aten::split",
        "aten::squeeze",
        "aten::t",
        "aten::to",
        "aten::transpose",
        "aten::unflatten",
        "aten::_unsafe_view",
        "aten::unsqueeze",
        "aten::view",
    }
)
"""Ops that, having no op inside them, only make views or allocate; they touch no element."""

_NAMED: Final = 3


def leaf_text(outcome: Outcome) -> str:
    """Say ``18 of 23 leaf ops only view or allocate (7 as_strided, 4 resolve_conj ...)``; "" without ops."""
    leaves = leaf_ops(outcome)
    idle = Counter({name: n for name, n in leaves.items() if name in BOOKKEEPING})
    total = sum(leaves.values())
    if not idle:
        return ""
    shown = [f"{n} {printable(name.removeprefix('aten::'))}" for name, n in idle.most_common(_NAMED)]
    more = " ..." if len(idle) > _NAMED else ""
    which = f"{'all' if idle.total() == total else f'{idle.total()} of'} {plural(total, 'leaf op')}"
    return f"{which} only view or allocate ({', '.join(shown)}{more})"


def leaf_ops(outcome: Outcome) -> Counter[str]:
    """Leaf ops of the first forward by name."""
    scope = outcome.scope
    if outcome.look is None or scope is None or not scope.scope.calls:
        return Counter()
    tree = outcome.look.facts.tree
    rows = scope.scope.calls[0].ops
    return Counter(tree.trace.name_of(int(row)) for row in rows[tree.n_children[rows] == 0])
