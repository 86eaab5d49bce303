"""Products that nvjet kernels do not take: whether cuBLAS splits them, by small fitted decision trees.

Misaligned 16-bit products run kernels written for Turing and Ampere, 32-bit ones kernels on CUDA cores. Both
are split along K where they have few tiles; the partial products are added up by a kernel of their own, by
the last block of each tile (whose counters a memset clears), or by a second launch of the same kernel.
"""

import math
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Final

from tracehunch.predict.ops.dtypes import HALF
from tracehunch.predict.ops.gemm.product import Product
from tracehunch.predict.ops.trees import Node, Outcome, grown, outcome_of

_ROOM: Final = {
    "lt": 20.0,
    "cublas": 25.0,
}  # log2 of the bytes of workspace that torch gives cuBLAS on Hopper


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

    Batches are never split: 2,316 of 2,328 ran one kernel and nothing else. Nor can a single element of K be.
    """
    if product.batch > 1 or product.k == 1:
        return Outcome(1, 0, 0.99)
    return outcome_of(trees()[family(product)], features(product))


@lru_cache(maxsize=1)
def trees() -> Mapping[str, Node | Outcome]:
    """Return the trees by family."""
    table = tomllib.loads((files(__package__) / "branches.toml").read_text(encoding="utf-8"))
    return grown(table["trees"])
