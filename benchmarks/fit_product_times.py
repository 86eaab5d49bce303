"""Fit how long matrix products take: prints predict/ops/gemm/times.toml.

    python benchmarks/fit_product_times.py > src/tracehunch/predict/ops/gemm/times.toml

Coefficients are fitted on one half of the shapes, errors and ranges are of the other half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from attention_truth import activities, more_activities, steps_of
from fit_products import Measured, measured
from simplex import minimise

from tracehunch.predict.environment import environment
from tracehunch.predict.ops.gemm.nvjet import choose
from tracehunch.predict.ops.gemm.times import (
    NVJET_FIELDS,
    OTHER_FIELDS,
    TILED_FIELDS,
    family,
    nvjet_us,
    other_us,
    tiled_us,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Formula = Callable[[Measured, dict[str, float]], float]

GPU = environment("h200", "2.11").gpu
START = {
    "launch_us": 2.0, "clock_ghz": 1.8, "step": 60.0, "load": 45.0, "multicast": 0.3, "tile": 500.0,
    "store": 8.0, "bandwidth": 0.7, "peak": 0.8, "reduce_us": 1.7, "reduce_bytes": 2.0, "efficiency": 0.4,
    "serial_ns": 0.6, "further_us": 2.0, "tile128": 0.3, "tile64": 0.2, "tile32": 0.1,
    "written": 0.5,
}  # fmt: skip
SHARES = ("efficiency", "bandwidth", "written", "peak", "tile128", "tile64", "tile32")
LARGE = 50  # us
FEW = 5
SAMPLE = 700  # products of a family that a fit looks at


def of_attention() -> Iterator[Measured]:
    """Yield the batched products of attention's variants that nvjet kernels did not take."""
    for m in (*activities(), *more_activities()):
        for step, us in steps_of(m):
            if step.product is not None and not step.product.aligned:
                yield Measured(step.product, ("",), us)


def nvjet(row: Measured, c: dict[str, float]) -> float:
    """Return the time of a product on an nvjet kernel."""
    assert GPU is not None
    return nvjet_us(row.product, choose(row.product, GPU.sms), GPU, c)


def tiled(row: Measured, c: dict[str, float]) -> float:
    """Return the time of a product of matrices on other kernels."""
    assert GPU is not None
    return tiled_us(row.product, row.outcome[0], GPU, c)


def vector(row: Measured, c: dict[str, float]) -> float:
    """Return the time of a product with a vector."""
    assert GPU is not None
    return other_us(row.product, row.outcome[0], GPU, c)


def report(name: str, rows: Sequence[Measured], fields: Sequence[str], formula: Formula) -> None:
    """Fit one family and print its table."""
    seen = [row for row in rows if row.part % 2 == 0][:SAMPLE]
    others = [row for row in rows if row.part % 2]

    def named(x: np.ndarray) -> dict[str, float]:
        c = dict(zip(fields, np.exp(np.clip(x, -9, 9)), strict=True))
        return {field: min(value, 1.0) if field in SHARES else value for field, value in c.items()}

    def cost(x: np.ndarray) -> float:
        c = named(x)
        return float(np.mean([abs(np.log(formula(row, c) / row.us)) for row in seen]))

    best = np.log([START[field] for field in fields])
    for _ in range(3):
        best = minimise(cost, best, rounds=250)
    c = named(best)
    ratio = np.array([row.us / formula(row, c) for row in others])
    large = np.array([row.us > LARGE for row in others])
    low, high = np.quantile(ratio, [0.05, 0.95])
    words = f"{len(others)} products of other shapes: off by {np.median(np.abs(ratio - 1)):.1%} at the median"
    if large.sum() > FEW:
        words += f", {np.median(np.abs(ratio[large] - 1)):.1%} above 50 us ({large.sum()})"
    print(f'\n[{name}]\nchecked = "{words}"')
    for field, value in c.items():
        print(f"{field} = {value:.4g}")
    print(f"low = {low:.2f}\nhigh = {high:.2f}")


HEAD = """\
# GPU time of matrix products, printed by benchmarks/fit_product_times.py; formulas are in times.py. Shares
# are of the GPU's data sheet; low and high hold nine in ten of the shapes that the fit did not see.
source = "{count:,} products of random shapes, profiled on an H200 with torch 2.11.0+cu130 (cuBLAS 13.0)\""""
TAIL = """
# GPUs, libraries and types that were not measured
[unmeasured]
checked = "not measured: shares that large products usually reach"
launch_us = 3.0
efficiency = 0.68
bandwidth = 0.75
serial_ns = 1.0
further_us = 2.5
low = 0.55
high = 1.9"""


def main() -> None:
    """Fit all families."""
    rows = [*measured(), *of_attention()]
    print(HEAD.format(count=len(rows)))
    report("nvjet", [row for row in rows if row.is_nvjet], NVJET_FIELDS, nvjet)
    others = [row for row in rows if not row.is_nvjet]
    for name in sorted({family(row.product) for row in others}):
        fields, formula = (OTHER_FIELDS, vector) if "vector" in name else (TILED_FIELDS, tiled)
        report(name, [row for row in others if family(row.product) == name], fields, formula)
    print(TAIL)


if __name__ == "__main__":
    main()
