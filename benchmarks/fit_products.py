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

from trees import grow, toml_of

from tracehunch.predict.ops.gemm.branches import family, features
from tracehunch.predict.ops.gemm.product import Product, alignment_of
from tracehunch.predict.ops.trees import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.predict.ops.trees import Node, Outcome

DATA = Path(__file__).parent.parent / "tests" / "data" / "truth" / "products_measured_h200.jsonl.gz"
MORE = DATA.with_name("products_more_h200.jsonl.gz")
NVJET = re.compile(r"nvjet_sm90_\w+?_(\d+)x(\d+)_\d+x\d+_(\d+)x(\d+)_[hv]_(\w*?)_?([NT])([NT])([NT])$")
COPIES = ("at::native::", "Memcpy")
TURNED_A = frozenset({"mm_ta", "mm_tatb", "bmm_ta"})
TURNED_B = frozenset({"linear", "linear_bias", "mm_tatb", "bmm_t", "matmul4d_t"})
WITH_BIAS = frozenset({"linear_bias", "addmm"})
PARTS = 8
DEPTH = 10
LEAST = 10  # products in a leaf
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
    """Yield products of all kinds that were measured."""
    return _measured(DATA)


def more() -> Iterator[Measured]:
    """Yield more products without a batch, of those that nvjet kernels did not take."""
    return _measured(MORE)


def _measured(path: Path) -> Iterator[Measured]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            kind, batch, m, n, k, dtype, activities = json.loads(line)
            turned_a, turned_b = kind in TURNED_A, kind in TURNED_B
            aligned = alignment_of(m=m, n=n, k=k, turned_a=turned_a, turned_b=turned_b)
            route = "lt" if kind in WITH_BIAS else "cublas"
            ran = [a for a in activities if not a[0].startswith(COPIES)]
            product = Product(m, n, k, batch, dtype, turned_a, turned_b, aligned, route)
            yield Measured(product, tuple(a[0] for a in ran), sum(a[1] for a in ran))


def grown(rows: Sequence[Measured], parts: Sequence[int]) -> Node | Outcome:
    """Return the tree of the products of some parts."""
    those = [one for one in rows if one.part in parts]
    return grow([features(one.product) for one in those], [one.outcome for one in those], DEPTH, LEAST)


def left_out(rows: Sequence[Measured]) -> float:
    """Return the share of products whose outcome a tree of the other parts foretells."""
    right = 0
    for held in range(PARTS):
        tree = grown(rows, [part for part in range(PARTS) if part != held])
        for one in rows:
            if one.part == held:
                told = outcome_of(tree, features(one.product))
                right += (told.kernels, told.memsets) == one.outcome
    return right / len(rows)


def main() -> None:
    """Print the trees, with the share of unseen products that they foretell."""
    rows = [one for one in (*measured(), *more()) if one.product.batch == 1 and not one.is_nvjet]
    print(HEAD.format(count=len(rows)))
    for name in sorted({family(one.product) for one in rows}):
        those = [one for one in rows if family(one.product) == name]
        print(f"# {len(those)} products; of the parts left out in turn {left_out(those):.1%} exact")
        print(toml_of(name, grown(those, range(PARTS))))


if __name__ == "__main__":
    main()
