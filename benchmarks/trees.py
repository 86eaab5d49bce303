"""Growing the decision trees of `predict/ops/trees.py` from outcomes that were measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehunch.predict.ops.trees import Node, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

WIDTH = 108


def grow(
    features: Sequence[Mapping[str, float]], outcomes: Sequence[tuple[int, int]], depth: int, least: int
) -> Node | Outcome:
    """Return the tree that tells (kernels, memsets) from features, with at least so many calls in a leaf."""
    names = list(features[0])
    known = sorted(set(outcomes))
    x = np.array([list(one.values()) for one in features])
    y = np.array([known.index(one) for one in outcomes])
    return _grow(x, y, names, known, (depth, least))


def _grow(
    x: Floats,
    y: NDArray[np.int64],
    names: Sequence[str],
    known: Sequence[tuple[int, int]],
    limits: tuple[int, int],
) -> Node | Outcome:
    depth, least = limits
    counts = np.bincount(y, minlength=len(known)).astype(float)
    most = int(counts.argmax())
    leaf = Outcome(*known[most], round(float(counts[most] / counts.sum()), 2))
    if depth == 0 or len(y) < 2 * least or counts.max() == len(y):
        return leaf
    found = _cut(x, np.eye(len(known))[y], counts, least)
    if found is None:
        return leaf
    column, threshold = found
    side = x[:, column] <= threshold
    if side.all():
        return leaf
    low, high = (_grow(x[part], y[part], names, known, (depth - 1, least)) for part in (side, ~side))
    alike = isinstance(low, Outcome) and isinstance(high, Outcome)
    if alike and (low.kernels, low.memsets) == (high.kernels, high.memsets):
        return leaf
    return Node(names[column], round(threshold, 3), low, high)


def _cut(x: Floats, hot: Floats, counts: Floats, least: int) -> tuple[int, float] | None:
    """Return the column and threshold that part the outcomes best, by Gini's impurity."""
    best, found = float(_impurity(counts)) - 1e-9, None
    for column in range(x.shape[1]):
        order = np.argsort(x[:, column], kind="stable")
        values = x[order, column]
        low = hot[order].cumsum(0)
        score = _impurity(low) + _impurity(counts - low)
        cuts = np.arange(least - 1, len(x) - least)
        cuts = cuts[values[cuts] < values[cuts + 1]]
        if len(cuts):
            at = cuts[score[cuts].argmin()]
            if score[at] < best:
                best, found = float(score[at]), (column, float((values[at] + values[at + 1]) / 2))
    return found


def _impurity(counts: Floats) -> Floats:
    """Return Gini's impurity times the number of calls, for rows of class counts."""
    total = counts.sum(-1)
    result: Floats = total - (counts**2).sum(-1) / np.maximum(total, 1)
    return result


def toml_of(name: str, tree: Node | Outcome) -> str:
    """Return a tree as a TOML array, see `predict.ops.trees.grown`."""
    lines, line = [f"{name} = ["], " "
    for row in _rows(tree):
        if len(line) + len(row) + 2 > WIDTH:
            lines.append(line)
            line = " "
        line += f" {row},"
    return "\n".join([*lines, line, "]"])


def _rows(tree: Node | Outcome) -> Iterator[str]:
    if isinstance(tree, Outcome):
        yield f"[{tree.kernels}, {tree.memsets}, {tree.certainty:.2f}]"
        return
    yield f'["{tree.feature}", {tree.threshold}]'
    yield from _rows(tree.low)
    yield from _rows(tree.high)
