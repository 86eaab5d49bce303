"""Grow the trees that tell which products cuBLAS splits, from products measured on an H200.

    python benchmarks/fit_products.py          # prints predict/ops/gemm/branches.toml

Shapes are dealt by a hash of their numbers into eight parts: each is foretold by trees grown on the others.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tracehunch.predict.ops.gemm.branches import family, features
from tracehunch.predict.ops.gemm.product import Product, alignment_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

DATA = Path(__file__).parent.parent / "tests" / "data" / "truth" / "products_measured_h200.jsonl.gz"
NVJET = re.compile(r"nvjet_sm90_\w+?_(\d+)x(\d+)_\d+x\d+_(\d+)x(\d+)_[hv]_(\w*?)_?([NT])([NT])([NT])$")
COPIES = ("at::native::", "Memcpy")
TURNED_A = frozenset({"mm_ta", "mm_tatb", "bmm_ta"})
TURNED_B = frozenset({"linear", "linear_bias", "mm_tatb", "bmm_t", "matmul4d_t"})
WITH_BIAS = frozenset({"linear_bias", "addmm"})
PARTS = 8
DEPTH = 6
LEAST = 12  # products in a leaf
HEAD = """\
# Kernels and memsets of products that nvjet kernels do not take, printed by benchmarks/fit_products.py:
# trees in depth-first order, [feature, threshold] for a branch (at most: the low side, which follows),
# [kernels, memsets, share of the products in the leaf] for a leaf. Features are logarithms to base 2, see
# features() in branches.py.
source = "{count:,} products of random shapes, profiled on an H200 with torch 2.11.0+cu130 (cuBLAS 13.0)"

[trees]"""


@dataclass(frozen=True)
class Measured:
    """One product and what it ran, the copy of a bias before it left out."""

    product: Product
    names: tuple[str, ...]
    us: float

    @property
    def outcome(self) -> tuple[int, int]:
        """Kernels and memsets."""
        memsets = sum(name.startswith("Memset") for name in self.names)
        return len(self.names) - memsets, memsets

    @property
    def is_nvjet(self) -> bool:
        """Whether it ran one of Hopper's own kernels."""
        return any(name.startswith("nvjet") for name in self.names)

    @property
    def part(self) -> int:
        """One of eight, by shape."""
        p = self.product
        return zlib.crc32(f"{p.m},{p.n},{p.k},{p.batch}".encode()) % PARTS


def measured() -> Iterator[Measured]:
    """Yield all products that were measured."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            kind, batch, m, n, k, dtype, activities = json.loads(line)
            turned_a, turned_b = kind in TURNED_A, kind in TURNED_B
            aligned = alignment_of(m=m, n=n, k=k, turned_a=turned_a, turned_b=turned_b)
            route = "lt" if kind in WITH_BIAS else "cublas"
            ran = [a for a in activities if not a[0].startswith(COPIES)]
            product = Product(m, n, k, batch, dtype, turned_a, turned_b, aligned, route)
            yield Measured(product, tuple(a[0] for a in ran), sum(a[1] for a in ran))


def impurity(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Gini's impurity times the number of products, for rows of class counts."""
    total = counts.sum(-1)
    return total - (counts**2).sum(-1) / np.maximum(total, 1)


def grow(
    x: NDArray[np.float64], y: NDArray[np.int64], names: Sequence[str], depth: int, least: int
) -> list[list[object]]:
    """Return a tree in depth-first order: branches [feature, threshold], leaves [class, share]."""
    classes = int(y.max()) + 1 if len(y) else 1
    counts = np.bincount(y, minlength=classes).astype(float)
    leaf = [[int(counts.argmax()), float(counts.max() / counts.sum())]]
    if depth == 0 or len(y) < 2 * least or counts.max() == len(y):
        return leaf
    best = (float(impurity(counts)) - 1e-9, -1, 0.0)
    hot = np.eye(classes)[y]
    for column in range(x.shape[1]):
        order = np.argsort(x[:, column], kind="stable")
        values = x[order, column]
        low = hot[order].cumsum(0)
        score = impurity(low) + impurity(counts - low)
        cuts = np.arange(least - 1, len(y) - least)
        cuts = cuts[values[cuts] < values[cuts + 1]]
        if len(cuts):
            at = cuts[score[cuts].argmin()]
            if score[at] < best[0]:
                best = (float(score[at]), column, float((values[at] + values[at + 1]) / 2))
    if best[1] < 0:
        return leaf
    side = x[:, best[1]] <= best[2]
    low_tree = grow(x[side], y[side], names, depth - 1, least)
    high_tree = grow(x[~side], y[~side], names, depth - 1, least)
    if len(low_tree) == len(high_tree) == 1 and low_tree[0][0] == high_tree[0][0]:
        return leaf
    return [[names[best[1]], round(best[2], 3)], *low_tree, *high_tree]


def descend(tree: list[list[object]], asked: dict[str, float]) -> tuple[int, float]:
    """Return the class and share of the leaf that a product falls into."""

    def walk(at: int, *, live: bool) -> tuple[int, tuple[int, float] | None]:
        first, second = tree[at]
        if isinstance(first, int):
            return at + 1, (first, float(second)) if live else None
        is_low = live and asked[str(first)] <= float(second)
        after, low = walk(at + 1, live=is_low)
        end, high = walk(after, live=live and not is_low)
        return end, low or high

    found = walk(0, live=True)[1]
    assert found is not None
    return found


def grown(rows: Sequence[Measured], parts: Sequence[int]) -> tuple[list[list[object]], list[tuple[int, int]]]:
    """Return the tree of the products of some parts, and the outcomes that its classes stand for."""
    those = [one for one in rows if one.part in parts]
    outcomes = sorted({one.outcome for one in those})
    x = np.array([list(features(one.product).values()) for one in those])
    y = np.array([outcomes.index(one.outcome) for one in those])
    return grow(x, y, list(features(those[0].product)), DEPTH, LEAST), outcomes


def left_out(rows: Sequence[Measured]) -> float:
    """Return the share of products whose outcome a tree of the other parts foretells."""
    right = 0
    for held in range(PARTS):
        tree, outcomes = grown(rows, [part for part in range(PARTS) if part != held])
        those = [one for one in rows if one.part == held]
        right += sum(outcomes[descend(tree, features(one.product))[0]] == one.outcome for one in those)
    return right / len(rows)


def main() -> None:
    """Print the trees, with the share of unseen products that they foretell."""
    rows = [one for one in measured() if one.product.batch == 1 and not one.is_nvjet]
    print(HEAD.format(count=len(rows)))
    for name in sorted({family(one.product) for one in rows}):
        those = [one for one in rows if family(one.product) == name]
        print(f"# {len(those)} products; of the parts left out in turn {left_out(those):.1%} exact")
        print(f"{name} = [")
        tree, outcomes = grown(those, range(PARTS))
        for first, second in tree:
            if isinstance(first, int):
                print(f"  [{outcomes[first][0]}, {outcomes[first][1]}, {second:.2f}],")
            else:
                print(f'  ["{first}", {second}],')
        print("]")


if __name__ == "__main__":
    main()
