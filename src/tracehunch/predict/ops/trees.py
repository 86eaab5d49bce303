"""Decision trees for what libraries choose by rules of their own: how many kernels, how many memsets."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many kernels and memsets, and the share of the calls measured like it that had them."""

    kernels: int
    memsets: int
    certainty: float


@dataclass(frozen=True, slots=True)
class Node:
    """Go to `low` where the feature is at most `threshold`, else to `high`."""

    feature: str
    threshold: float
    low: "Node | Outcome"
    high: "Node | Outcome"


def grown(table: Mapping[str, Sequence[Sequence[str | float]]]) -> dict[str, Node | Outcome]:
    """Return the trees of a TOML table by name.

    There a tree is a list in depth-first order: [feature, threshold] for a branch, whose low side follows at
    once and whose high side follows that, [kernels, memsets, share] for a leaf.
    """
    return {name: _grown(iter(rows)) for name, rows in table.items()}


def outcome_of(tree: Node | Outcome, asked: Mapping[str, float]) -> Outcome:
    """Return the leaf that features lead to."""
    node = tree
    while isinstance(node, Node):
        node = node.low if asked[node.feature] <= node.threshold else node.high
    return node


def _grown(rows: Iterator[Sequence[str | float]]) -> Node | Outcome:
    first, second, *rest = next(rows)
    if isinstance(first, str):
        low = _grown(rows)
        return Node(first, float(second), low, _grown(rows))
    return Outcome(int(first), int(second), float(rest[0]))
