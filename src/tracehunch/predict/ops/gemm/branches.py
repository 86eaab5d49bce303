"""Products that nvjet kernels do not take: whether cuBLAS splits them, by small fitted decision trees.

Misaligned 16-bit products run kernels written for Turing and Ampere, 32-bit ones kernels on CUDA cores. Both
are split along K where they have few tiles; the partial products are added up by a kernel of their own, by
the last block of each tile (whose counters a memset clears), or by a second launch of the same kernel.
"""

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final

from tracehunch.predict.ops.dtypes import HALF
from tracehunch.predict.ops.gemm.product import Product

_ROOM: Final = {
    "lt": 20.0,
    "cublas": 25.0,
}  # log2 of the bytes of workspace that torch gives cuBLAS on Hopper


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many kernels and memsets, and the share of the products measured like it that had them."""

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


def features(product: Product) -> dict[str, float]:
    """Return what the trees ask: logarithms to base 2 of sizes, counts of tiles and their ratios."""
    m, n, k, batch = product.m, product.n, product.k, product.batch
    tiles = {side: math.log2(batch * math.ceil(m / side) * math.ceil(n / side)) for side in (32, 64, 128)}
    inner = math.log2(k)
    return {
        "m": math.log2(m),
        "n": math.log2(n),
        "k": inner,
        "narrow": math.log2(min(m, n)),
        "area": math.log2(m * n),
        "tiles32": tiles[32],
        "tiles64": tiles[64],
        "tiles128": tiles[128],
        "k_per_tile64": inner - tiles[64],
        "k_per_tile128": inner - tiles[128],
        "work": math.log2(m * n * k),
        "part": math.log2(4 * m * n) - _ROOM[product.route],
        "turned_a": float(product.turned_a),
        "turned_b": float(product.turned_b),
        "alignment": float(min(8, product.alignment)),
    }


def family(product: Product) -> str:
    """Return the name of the tree for a product."""
    width = "half" if product.dtype in HALF else "fp32"
    return f"{width}_vector" if product.is_vector else f"{width}_{product.route}"


def outcome(product: Product) -> Outcome:
    """Return kernels and memsets of a product that no nvjet kernel takes, on Hopper.

    Batches are never split: 2,316 of 2,328 ran one kernel and nothing else.
    """
    if product.batch > 1:
        return Outcome(1, 0, 0.99)
    asked = features(product)
    node: Node | Outcome = trees()[family(product)]
    while isinstance(node, Node):
        node = node.low if asked[node.feature] <= node.threshold else node.high
    return node


@lru_cache(maxsize=1)
def trees() -> Mapping[str, Node | Outcome]:
    """Return the trees by family.

    In the TOML a tree is a list in depth-first order: [feature, threshold] for a branch, whose low side
    follows at once and whose high side follows that, [kernels, memsets, share] for a leaf.
    """
    table = tomllib.loads((files(__package__) / "branches.toml").read_text(encoding="utf-8"))
    return {name: _grown(iter(rows)) for name, rows in table["trees"].items()}


def _grown(rows: Iterator[list[str | float]]) -> Node | Outcome:
    first, second, *rest = next(rows)
    if isinstance(first, str):
        low = _grown(rows)
        return Node(first, float(second), low, _grown(rows))
    return Outcome(int(first), int(second), float(rest[0]))
