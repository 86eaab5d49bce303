"""Which nvjet kernel cuBLAS picks on Hopper: tile, cluster and split, from what they cost.

The kernels are persistent: as many blocks as SMs walk over the tiles of the product. Tiles have 64 rows or a
multiple (the matrix instructions') and columns in steps of 8, in either orientation; an operand that is not
contiguous along K is loaded 32 elements at a time, so its tile's side is a multiple of 32. Products with few
tiles and a long K are split along K, with a reduction behind.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.predict.ops.gemm.product import Product

Array = NDArray[np.float64]
Costs = tuple[tuple[str, float], ...]

CLUSTERS: Final = ((1, 1), (2, 1), (1, 2), (4, 1), (1, 4), (2, 2), (4, 2), (2, 4))
"""Blocks of a cluster along n and along m."""

_PAIR: Final = 2  # blocks of the largest cluster that any SM can be part of
_LOADED: Final = 32  # elements along a side that is not contiguous along K
_NEVER: Final = 1e30


@dataclass(frozen=True, slots=True)
class Choice:
    """The kernel expected: `tile` over (n, m), `splits` along K (1 for none).

    `tiles` counts them with the clusters' padding, `sms` how many run at once, `waves` how many rounds that
    makes. `memset` tells whether the tile counter is cleared by a memset before. `certainty` is the share
    of the near-equal kernels that agree on memset and split.
    """

    tile: tuple[int, int]
    cluster: tuple[int, int]
    turned: bool
    splits: int
    tiles: int
    sms: int
    waves: int
    memset: bool
    certainty: float


@dataclass(frozen=True, slots=True)
class _Table:
    """Candidates as arrays: tiles in both orientations along the first axis, clusters along the second."""

    sides: Array  # [2, tiles, 1]: the tile's side along n, and along m
    turned: Array  # [tiles, 1]
    clusters: Array  # [2, clusters]
    sms: Array  # [clusters]
    step: Array  # [tiles, clusters]: cycles of one step of the main loop
    share: Array  # [tiles, clusters]: factor on the whole
    store: Array  # [tiles, 1]: cycles to store a tile
    numbers: Mapping[str, Any]
    cost: Mapping[str, float]


@lru_cache(maxsize=1)
def numbers() -> Mapping[str, Any]:
    """Return the model's numbers, as nvjet.toml has them."""
    return tomllib.loads((files(__package__) / "nvjet.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=8)
def _table(sms: int, costs: Costs) -> _Table:
    numbers_ = numbers()
    cost = dict(costs) or numbers_["cost"]
    shapes = [(row["m"], n) for row in numbers_["tiles"] for n in row["n"]]
    rows = np.array([m for m, _ in shapes] * 2, dtype=np.float64)[:, None]
    columns = np.array([n for _, n in shapes] * 2, dtype=np.float64)[:, None]
    turned = np.array([0.0] * len(shapes) + [1.0] * len(shapes))[:, None]
    sides = np.stack([np.where(turned == 0, rows, columns), np.where(turned == 0, columns, rows)])
    clusters = np.array(CLUSTERS, dtype=np.float64).T
    members = clusters[0] * clusters[1]
    wide = sms * numbers_["wide_cluster_sms"] // numbers_["sms"]
    block = numbers_["k_block"]
    math = rows * columns * block / cost["flops_per_cycle"] * cost["slowdown"] + cost["step"]
    saved = 1 + (clusters - 1) * cost["multicast"]
    loads = (sides[0] / saved[1] + sides[1] / saved[0]) * 2 * block / cost["load"]
    return _Table(
        sides=sides,
        turned=turned,
        clusters=clusters,
        sms=np.where(members > _PAIR, wide - wide % members, sms),
        step=np.maximum(math, loads),
        share=np.exp(cost["turned"] * turned + cost["alone"] * (members == 1)),
        store=rows * columns / cost["store"],
        numbers=numbers_,
        cost=cost,
    )


@lru_cache(maxsize=4096)
def choose(product: Product, sms: int, costs: Costs = ()) -> Choice:
    """Return the kernel that a 16-bit product with aligned strides is expected to run.

    `costs` replace those that are shipped, for fitting.
    """
    table = _table(sms, costs)
    m, n = (product.m, product.n) if product.n > 1 else (1, product.m)  # a single column is taken as a row
    count = np.ceil(n / table.sides[0] / table.clusters[0]) * np.ceil(m / table.sides[1] / table.clusters[1])
    tiles = product.batch * count * (table.clusters[0] * table.clusters[1])
    whole, split, splits = _costs(product, table, tiles, m, n)
    cycles = np.stack([whole, split])
    best = np.unravel_index(np.argmin(cycles), cycles.shape)
    is_split, tile, cluster = (int(index) for index in best)
    waves = np.ceil(tiles / table.sms)
    cleared = tiles > table.numbers["memset_waves"] * table.sms
    likely = np.exp(-table.cost["sharpness"] * np.log(cycles / cycles[best]))
    agree = likely[1] if is_split else likely[0] * (cleared == cleared[tile, cluster])
    first, second = table.clusters[:, cluster]
    return Choice(
        tile=(int(table.sides[0, tile, 0]), int(table.sides[1, tile, 0])),
        cluster=(int(first), int(second)),
        turned=bool(table.turned[tile, 0]),
        splits=int(splits[tile, cluster]) if is_split else 1,
        tiles=int(tiles[tile, cluster]),
        sms=int(table.sms[cluster]),
        waves=1 if is_split else int(waves[tile, cluster]),
        memset=not is_split and bool(cleared[tile, cluster]),
        certainty=float(agree.sum() / likely.sum()),
    )


def _costs(product: Product, table: _Table, tiles: Array, m: int, n: int) -> tuple[Array, Array, Array]:
    """Return cycles of each candidate, whole and split, and the parts it would be split into."""
    cost, numbers = table.cost, table.numbers
    steps = -(-product.k // numbers["k_block"])
    each = cost["tile"] + table.store
    whole = (cost["launch"] + np.ceil(tiles / table.sms) * (steps * table.step + each)) * table.share
    room = numbers["lt_workspace"] if product.route == "lt" else numbers["workspace"]
    most = min(steps // numbers["least_steps"], room // (4 * m * n)) if product.batch == 1 else 0
    splits = np.minimum(np.floor(table.sms / tiles), most)
    parts = np.maximum(splits, 1)
    reduction = cost["split"] + cost["split_element"] * parts * (m * n)
    cycles = cost["launch"] + np.ceil(steps / parts) * table.step + each + reduction
    split = np.where(splits > 1, cycles * table.share, _NEVER)
    allowed = _allowed(product, table)
    return np.where(allowed, whole, _NEVER), np.where(allowed, split, _NEVER), splits


def _allowed(product: Product, table: _Table) -> NDArray[np.bool_]:
    """Tell which tiles can load both operands."""
    along_n = (table.sides[0] % _LOADED == 0) if not _k_major_n(product) else table.sides[0] > 0
    along_m = (table.sides[1] % _LOADED == 0) if not _k_major_m(product) else table.sides[1] > 0
    allowed: NDArray[np.bool_] = along_n & along_m
    return allowed


def _k_major_n(product: Product) -> bool:
    """Whether the operand on the tile's n side is contiguous along K; with one column, that is A."""
    return (not product.turned_a) if product.n == 1 else product.turned_b


def _k_major_m(product: Product) -> bool:
    return True if product.n == 1 else not product.turned_a
