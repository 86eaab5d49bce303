"""Fit what an nvjet kernel's tile costs, from the kernels that cuBLAS picked: prints [cost] of nvjet.toml.

    python benchmarks/fit_nvjet.py             # needs torch

The likelihood of the kernel that ran (tile, orientation, cluster, split) among all candidates is raised by
gradient steps, on the shapes of one half; the other half tells how well the result foretells the unseen.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from fit_products import NVJET, Measured, measured

from tracehunch.predict.ops.gemm.nvjet import CLUSTERS, choose, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.predict.ops.gemm.product import Product

NEVER = 60.0
PAIR = 2
FITTED = (
    "slowdown", "step", "load", "multicast", "launch", "tile", "store", "turned", "alone", "split",
    "split_element", "sharpness",
)  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """A product, the candidate that ran, by tile in either orientation and cluster, and what came with it."""

    product: Product
    tile: tuple[int, int, bool]
    cluster: tuple[int, int]
    split: bool
    memset: bool
    part: int


def kernels() -> list[Ran]:
    """Return the products that ran an nvjet kernel, those of tiles seen fewer than three times left out."""
    found = [one for row in measured() if (one := _ran(row)) is not None]
    table = numbers()
    known = {(row["m"], n) for row in table["tiles"] for n in row["n"]}
    return [one for one in found if one.tile[:2] in known]


def _ran(row: Measured) -> Ran | None:
    for name in row.names:
        match = NVJET.match(name)
        if match is None:
            continue
        first, second, across, along = (int(match[group]) for group in (1, 2, 3, 4))
        turned = match[8] == "N"
        tile = (second, first, True) if turned else (first, second, False)
        memset = any(other.startswith("Memset") for other in row.names)
        return Ran(row.product, tile, (across, along), "splitK" in match[5], memset, row.part)
    return None


class Batch:
    """Products as tensors: rows, then candidates (clusters first, tiles last)."""

    def __init__(self, rows: Sequence[Ran]) -> None:
        table = numbers()
        shapes = [(row["m"], n) for row in table["tiles"] for n in row["n"]]
        tiles = [(m, n, turned) for turned in (False, True) for m, n in shapes]
        index = {tile: position for position, tile in enumerate(tiles)}
        self.count = len(tiles)
        self.rows = torch.tensor([float(m) for m, _, _ in tiles])
        self.columns = torch.tensor([float(n) for _, n, _ in tiles])
        self.turned = torch.tensor([float(turned) for _, _, turned in tiles])
        first = torch.where(self.turned == 0, self.rows, self.columns)
        second = torch.where(self.turned == 0, self.columns, self.rows)
        self.sides = (first, second)
        self.clusters = torch.tensor(CLUSTERS).float().T[:, :, None, None]
        members = self.clusters[0] * self.clusters[1]
        limit = torch.where(members > PAIR, float(table["wide_cluster_sms"]), float(table["sms"]))

        def column(values: Sequence[float]) -> torch.Tensor:
            return torch.tensor(values).float()[:, None]

        products = [one.product for one in rows]
        single = [p.n == 1 for p in products]
        n = column([p.m if one else p.n for p, one in zip(products, single, strict=True)])
        m = column([1 if one else p.m for p, one in zip(products, single, strict=True)])
        batch = column([p.batch for p in products])
        self.area = m * n
        self.steps = torch.ceil(column([p.k for p in products]) / table["k_block"])
        room = column([table["lt_workspace"] if p.route == "lt" else table["workspace"] for p in products])
        most = torch.floor(torch.minimum(self.steps / table["least_steps"], room / (4 * self.area))) * (
            batch == 1
        )
        padded = (
            torch.ceil(n / first / self.clusters[0]) * torch.ceil(m / second / self.clusters[1]) * members
        )
        launched = batch * padded
        self.waves = torch.ceil(launched / limit)
        self.splits = torch.minimum(torch.floor(limit / launched), most)
        self.cleared = (launched > table["memset_waves"] * limit).float()
        loaded_n = column([(p.turned_a if p.n == 1 else not p.turned_b) for p in products]) > 0
        loaded_m = column([(p.n > 1 and p.turned_a) for p in products]) > 0
        self.barred = (loaded_n & (first % 32 != 0)) | (loaded_m & (second % 32 != 0))
        self.ran = torch.tensor([index[one.tile] + self.count * one.split for one in rows])
        self.cluster = torch.tensor([CLUSTERS.index(one.cluster) for one in rows])
        self.outcome = torch.tensor([2 if one.split else int(one.memset) for one in rows])


def loss(cost: dict[str, torch.Tensor], batch: Batch) -> torch.Tensor:
    """Return how unlikely what ran is."""
    table = numbers()
    c = {name: torch.exp(value) for name, value in cost.items()}
    first, second = batch.sides
    per_cycle = table["cost"]["flops_per_cycle"]
    math = batch.rows * batch.columns * table["k_block"] / per_cycle * c["slowdown"] + c["step"]
    saved = 1 + (batch.clusters - 1) * c["multicast"]
    loads = (first / saved[1] + second / saved[0]) * 2 * table["k_block"] / c["load"]
    step = torch.maximum(math, loads)
    members = batch.clusters[0] * batch.clusters[1]
    share = c["turned"] * batch.turned + c["alone"] * (members == 1)
    each = c["tile"] + batch.rows * batch.columns / c["store"]
    whole = torch.log(c["launch"] + batch.waves * (batch.steps * step + each)) + share
    parts = torch.clamp(batch.splits, min=1)
    added = c["split"] + c["split_element"] * parts * batch.area
    split = torch.log(c["launch"] + torch.ceil(batch.steps / parts) * step + each + added) + share
    never = torch.tensor(NEVER)
    whole = torch.where(batch.barred, never, whole)
    split = torch.where(batch.barred | (batch.splits <= 1), never, split)
    scores = -c["sharpness"] * torch.cat([whole, split], 2).permute(1, 0, 2)
    likely = torch.log_softmax(scores.flatten(1), 1).view_as(scores)
    row = torch.arange(len(batch.ran))
    chances = likely.exp()
    plain, split_chance = chances[:, :, : batch.count], chances[:, :, batch.count :].sum((1, 2))
    cleared = (plain * batch.cleared.permute(1, 0, 2)).sum((1, 2))
    outcomes = torch.stack([1 - cleared - split_chance, cleared, split_chance], 1).clamp(min=1e-6)
    exact = torch.clamp(likely[row, batch.cluster, batch.ran], min=-15)
    return -exact.mean() - torch.log(outcomes[row, batch.outcome]).mean()


def fit(rows: Sequence[Ran], start: dict[str, float], rounds: int, size: int = 300) -> dict[str, float]:
    """Return the costs that make what ran most likely."""
    cost = {name: torch.tensor(start[name]).log().requires_grad_() for name in FITTED}
    shuffled = list(rows)
    random.Random(0).shuffle(shuffled)  # noqa: S311  # the same batches each time
    batches = [Batch(shuffled[at : at + size]) for at in range(0, len(shuffled) - size + 1, size)]
    optimiser = torch.optim.Adam(list(cost.values()), lr=0.05)
    for turn in range(rounds):
        optimiser.param_groups[0]["lr"] = 0.05 * (1 - turn / rounds) + 0.002
        value = loss(cost, batches[turn % len(batches)])
        optimiser.zero_grad()
        value.backward()  # type: ignore[no-untyped-call]  # torch has no type for it here
        optimiser.step()
    return {name: float(value.detach().exp()) for name, value in cost.items()}


def judged(rows: Sequence[Ran], cost: dict[str, Any]) -> tuple[float, float]:
    """Return the shares of products whose activities and whose tile are right, by the shipped code."""
    right = tiles = 0
    for one in rows:
        found = choose(replace(one.product, alignment=8), numbers()["sms"], tuple(sorted(cost.items())))
        seen = (one.tile[1], one.tile[0]) if one.tile[2] else one.tile[:2]
        right += (found.splits > 1) == one.split and found.memset == one.memset
        tiles += found.tile == seen
    return right / len(rows), tiles / len(rows)


def main() -> None:
    """Fit on one half, judge on the other, print."""
    torch.manual_seed(0)
    rows = kernels()
    start = {name: float(numbers()["cost"][name]) for name in FITTED}
    seen = [one for one in rows if one.part % 2 == 0]
    others = [one for one in rows if one.part % 2]
    cost = {**numbers()["cost"], **fit(seen, start, rounds=120)}
    right, tiles = judged(others, cost)
    print(f"# fitted on {len(seen)} products, held against {len(others)} others, no shape in both:")
    print(f"# kernels and memsets exact for {right:.1%}, the tile right for {tiles:.0%}")
    print("[cost]")
    for name, value in cost.items():
        print(f"{name} = {value:.4g}")


if __name__ == "__main__":
    main()
