"""Attention written out by hand: a softmax between two matrix products, found by how they hang together.

A trace does not say which tensor an op reads. Where shapes were recorded the sizes tell: the softmax has as
many elements as the result of an earlier product, and the first or second operand of a later one has the
same sizes, batch for batch. Without shapes only order can tell: one product of batches, a softmax, another
product of batches, with nothing between them but ops that attention makes of its scores.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._ancestry import enclosing
from tracehunch.checks._products import Product, elements, product_of, product_rows
from tracehunch.checks._sdpa_math import MATH_OP
from tracehunch.trace.model import Cat, Int64, Trace
from tracehunch.tree import NONE, Tree
from tracehunch.tree.names import names_that

_SOFTMAX: Final = frozenset({"aten::_softmax", "aten::_masked_softmax"})
_LIBRARYS_OWN: Final = frozenset(
    {MATH_OP, "aten::_native_multi_head_attention", "aten::_transformer_encoder_layer_fwd"}
)
_EXP_SUM_DIV: Final = tuple(
    frozenset(f"aten::{name}{form}" for form in ("", "_")) for name in ("exp", "sum", "div")
)
_GENERATED: Final = "triton_"
_TEMPLATE: Final = "triton_tem_"
_NO_FORWARD: Final = ("log_softmax", "backward")
_REACH: Final = 8
"""Products between the softmax and the two that belong to it: a late projection of the values, say."""
_LEAST_KEYS: Final = 128
"""Without a batch, weights over fewer columns are taken for those of classes or experts."""


class Sizes(NamedTuple):
    """Of one attention; ``batch`` is batch times heads."""

    batch: int
    queries: int
    keys: int
    head_dim: int
    value_dim: int

    @property
    def scores(self) -> int:
        """Elements of the score matrices."""
        return self.batch * self.queries * self.keys


class Chain(NamedTuple):
    """Rows of the three ops that make an attention; ``sizes`` are None where shapes were not recorded."""

    scores_op: int
    softmax_op: int
    values_op: int
    sizes: Sizes | None
    dtype: str  # of the products' inputs as recorded, "" unknown


def chains(tree: Tree) -> list[Chain]:
    """Pair each softmax with the product before it and the one after it on its thread."""
    trace, softmaxes = tree.trace, _softmaxes(tree)
    products = product_rows(tree) if softmaxes.size else softmaxes
    rows = np.concatenate([softmaxes, products])
    trace.inputs_of(rows)  # all at once, so that each is known when it is asked for
    order = np.lexsort((trace.start_ns[rows], trace.thread[rows]))
    rows, is_product = rows[order], order >= softmaxes.size
    found: dict[tuple[int, int], Chain] = {}
    for at in np.flatnonzero(~is_product).tolist():
        before = _products_from(trace, rows, is_product, at, -1)
        after = _products_from(trace, rows, is_product, at, 1)
        chain = _chain(tree, int(rows[at]), before, after)
        if chain is not None:  # a softmax generated as several kernels counts once
            found.setdefault((chain.scores_op, chain.values_op), chain)
    return list(found.values())


def is_softmax(name: str) -> bool:
    """Tell the ops and generated kernels that compute the softmax of a forward pass."""
    if name in _SOFTMAX:
        return True
    small = name.lower()
    fused = is_generated(name) or "masked_softmax" in small or "maskedsoftmax" in small
    return fused and "softmax" in small and not any(word in small for word in _NO_FORWARD)


def is_generated(name: str) -> bool:
    """Tell kernels that Inductor wrote from ops, but for those of its templates."""
    return name.startswith(_GENERATED) and not name.startswith(_TEMPLATE)


def _softmaxes(tree: Tree) -> Int64:
    """Find the softmaxes, but for those inside an attention that is a library's own."""
    named = names_that(tree.trace, is_softmax)
    rows = np.flatnonzero((tree.trace.cat == Cat.CPU_OP) & named[tree.trace.name])
    rows = np.union1d(rows, _spelled_out(tree))
    if not rows.size:
        return rows
    by_hand: Int64 = rows[enclosing(tree, rows, _LIBRARYS_OWN.__contains__) == NONE]
    return by_hand


def _spelled_out(tree: Tree) -> Int64:
    """Find the ``exp`` of each softmax written as ``exp(x) / exp(x).sum()``; none without shapes."""
    trace = tree.trace
    step = np.full(len(trace.names), NONE)
    for number, names in enumerate(_EXP_SUM_DIV):
        step[names_that(trace, names.__contains__)] = number
    rows = tree.ops[step[trace.name[tree.ops]] != NONE].astype(np.int64)
    rows = rows[np.lexsort((trace.start_ns[rows], trace.thread[rows]))]
    one = step[trace.name[rows]]
    begins = np.flatnonzero((one[:-2] == 0) & (one[1:-1] == 1) & (one[2:] == 2))
    trios = rows[begins[:, None] + np.arange(3)]
    trace.inputs_of(trios.reshape(-1))  # all at once, so that each is known when it is asked for
    sizes = [{_scores(trace, row) for row in trio} for trio in trios.tolist()]
    alike = np.array([len(size) == 1 and 0 not in size for size in sizes], dtype=bool)
    found: Int64 = trios[alike, 0]
    return found


def _products_from(trace: Trace, rows: Int64, is_product: NDArray[np.bool_], at: int, step: int) -> list[int]:
    """Walk from a softmax to the nearest products, up to another softmax that is not part of the same."""
    found: list[int] = []
    here = at + step
    while 0 <= here < rows.size and trace.thread[rows[here]] == trace.thread[rows[at]]:
        if is_product[here]:
            found.append(int(rows[here]))
        elif found or not is_generated(trace.name_of(int(rows[here]))):
            break
        if len(found) == _REACH:
            break
        here += step
    return found


def _chain(tree: Tree, softmax: int, before: list[int], after: list[int]) -> Chain | None:
    if not before or not after:
        return None
    trace = tree.trace
    n_scores = _scores(trace, softmax)
    if not n_scores:
        together = _annotation(tree, before[0]) == _annotation(tree, softmax) == _annotation(tree, after[0])
        return Chain(before[0], softmax, after[0], None, "") if together else None
    for row in before:
        scores = product_of(trace, row)
        if scores is None or scores.result != n_scores:
            continue
        for later in after:
            values = product_of(trace, later)
            known = None if values is None else _sizes(scores, values)
            if known is not None:
                return Chain(row, softmax, later, known, scores.dtype)
    return None


def _annotation(tree: Tree, row: int) -> int:
    """Innermost annotation around an op; NONE where there is none."""
    return next((up for up in tree.ancestors(row) if tree.trace.cat[up] == Cat.USER_ANNOTATION), NONE)


def _scores(trace: Trace, softmax: int) -> int:
    """Elements that a softmax works on; 0 where not recorded."""
    dims = trace.input_of(softmax).dims
    return max(map(elements, dims), default=0) if isinstance(dims, list) else 0


def _sizes(scores: Product, values: Product) -> Sizes | None:
    """Sizes of the attention that two products make; None where they do not fit each other."""
    batch, keys = scores.batch, values.inner
    if values.batch != batch or keys not in (scores.rows, scores.columns):
        return None
    queries = scores.columns if keys == scores.rows != scores.columns else scores.rows
    if queries == values.rows:
        value_dim = values.columns
    elif queries == values.columns:
        value_dim = values.rows
    else:
        return None
    if batch == 1 and min(keys, queries) < _LEAST_KEYS:
        return None
    return Sizes(batch, queries, keys, scores.inner, value_dim)
