"""What the leaf ops of a forward are: on a CPU they stand for kernels, though most compute nothing.

An op *works* if it touches elements of tensors itself: it neither only views or allocates, nor only calls ops
that do. The textbook's operations are such ops; a trace shows them among views and allocations.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tracehunch.tree import NONE
from tracehunch.units import join, plural, printable

if TYPE_CHECKING:
    from tracehunch.facts.model import ScopeFacts
    from tracehunch.tree import Tree
    from tracehunch.verdict import Look, Surprise

BOOKKEEPING: Final = "bookkeeping"
"""Stands for a finding's id where views and allocations explain why there are more leaf ops than guessed."""

VIEWS: Final = frozenset(
    f"aten::{name}"
    for name in (
        "alias", "as_strided", "broadcast_to", "chunk", "contiguous", "detach", "diagonal", "empty",
        "empty_like", "empty_strided", "expand", "expand_as", "flatten", "movedim", "narrow", "new_empty",
        "permute", "reshape", "_reshape_alias", "resize_", "resolve_conj", "resolve_neg", "select", "slice",
        "split", "squeeze", "swapaxes", "t", "to", "transpose", "unbind", "unflatten", "_unsafe_view",
        "unsqueeze", "view", "view_as",
    )
)  # fmt: skip
"""Ops that, having no op inside them that works, only make views or allocate; they touch no element."""

_CASTS: Final = frozenset({"aten::copy_", "aten::_to_copy"})
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaf ops of one forward: ``views`` by name, ``casts`` of single numbers, and the ops that work."""

    total: int
    views: Counter[str]
    casts: int
    workers: tuple[str, ...]


def leaves_of(scope: ScopeFacts, tree: Tree) -> Leaves | None:
    """Sort the ops of the first call; None where it has none."""
    rows = [] if not scope.scope.calls else scope.scope.calls[0].ops.tolist()
    if not rows:
        return None
    names = {row: tree.trace.name_of(row) for row in rows}
    casts = {row for row in rows if names[row] in _CASTS and _is_of_numbers(tree, row)}
    working = _working(rows, names, casts, tree)
    leaves = [row for row in rows if tree.n_children[row] == 0]
    return Leaves(
        total=len(leaves),
        views=Counter(names[row] for row in leaves if names[row] in VIEWS),
        casts=sum(row in casts for row in leaves),
        workers=tuple(names[row] for row in working),
    )


def leaf_text(leaves: Leaves, *, named: bool = True) -> str:
    """Say ``16 of 19 leaf ops only view or allocate (5 as_strided ...), 1 casts a number``; "" if none do.

    ``named``: with the most frequent of them in brackets.
    """
    if not leaves.views:
        return ""
    n = leaves.views.total()
    shown = ", ".join(f"{k} {_plain(name)}" for name, k in leaves.views.most_common(_NAMED))
    names = f" ({shown}{' ...' if len(leaves.views) > _NAMED else ''})" if named else ""
    which = "all" if n == leaves.total else f"{n} of"
    casts = f", {leaves.casts} cast{'s' * (leaves.casts == 1)} a number" if leaves.casts else ""
    return f"{which} {plural(leaves.total, 'leaf op')} only view or allocate{names}{casts}"


def work_text(leaves: Leaves) -> str:
    """Say ``the work is done by 5 ops: 2 bmm, mul, masked_fill_ and _softmax``; "" if no op works."""
    counts = Counter(leaves.workers)
    if not counts:
        return ""
    if len(counts) == len(leaves.workers) == 1:
        return f"the work is done by {printable(leaves.workers[0])} itself"
    named = [f"{n} {_plain(name)}" if n > 1 else _plain(name) for name, n in counts.items()]
    return f"the work is done by {len(leaves.workers)} ops: {join(named)}"


def with_bookkeeping(look: Look) -> Look:
    """Explain the surplus of leaf ops by views and allocations, as far as these account for it."""
    told = tuple(_explained(one, look) for one in look.verdict.surprises)
    return replace(look, verdict=replace(look.verdict, surprises=told))


def _explained(surprise: Surprise, look: Look) -> Surprise:
    """Explain one surprise; of a claim that more than bookkeeping broke, a finding must explain the rest."""
    claim, scope = surprise.claim, look.facts.scope(surprise.claim.scope)
    if claim.key != "leaf_ops" or claim.relation != "==" or scope is None:
        return surprise
    leaves = leaves_of(scope, look.facts.tree)
    if leaves is None or not isinstance(claim.expected, int) or leaves.total <= claim.expected:
        return surprise
    surplus = len(leaves.workers) - claim.expected
    if surplus and not (surplus > 0 and surprise.explained_by):
        return surprise
    severity = "note" if claim.who == "textbook" else surprise.severity
    return replace(surprise, explained_by=(*surprise.explained_by, BOOKKEEPING), severity=severity)


def _working(rows: list[int], names: dict[int, str], casts: set[int], tree: Tree) -> list[int]:
    """Rows of ops that work: no view, no cast of a number, and no op inside that works; in order of time."""
    above: set[int] = set()
    working = []
    for row in sorted(rows, key=lambda row: (-int(tree.trace.start_ns[row]), int(tree.trace.dur_ns[row]))):
        if row in above or names[row] in VIEWS or row in casts:
            continue
        working.append(row)
        up = int(tree.parent[row])
        while up != NONE:
            above.add(up)
            up = int(tree.parent[up])
    return working[::-1]


def _is_of_numbers(tree: Tree, row: int) -> bool:
    """Whether an op took only tensors of no dimension, as recorded shapes tell."""
    shapes = tree.trace.args_of(row).get("Input Dims")
    return isinstance(shapes, list) and bool(shapes) and not any(shapes)


def _plain(name: str) -> str:
    return printable(name.removeprefix("aten::"))
