"""How far predicted times of attention reach: the ranges that hold most measurements the fit did not see."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from attention_truth import Measured, steps_of

from tracehunch.predict.roofline.coefficients import Coefficients, HostCost, Spread
from tracehunch.predict.roofline.dims import UNFUSED
from tracehunch.predict.roofline.host import floor_us
from tracehunch.predict.roofline.schedule import larger

if TYPE_CHECKING:
    from collections.abc import Sequence

COVERAGE: Final = (0.05, 0.95)
"""Quantiles of measured over predicted that the ranges reach, before they are widened by a margin."""

MARGIN: Final = 1.05
"""Other shapes than those left out err a little more."""

LEAST: Final = 0.12
"""How far a range reaches at least."""

HOST_MARGIN: Final = 1.03
HOST_LEAST: Final = 0.25
"""The same where the host decides: hosts differ from day to day."""

WIDEST: Final = 1.9
"""The largest end of a range of the GPU's time over the smallest: a wider one says little."""

UNSEEN: Final = Spread(1 / 1.6, 1.6)
"""The range of what was never measured."""

UNSEEN_HOST: Final = Spread(1 / 1.7, 1.7)


@dataclass(frozen=True)
class Residual:
    """A measurement, and what a model says that never saw its shape: the GPU's time, a fused part's alone."""

    measured: Measured
    gpu_us: float
    own_us: float
    model: Coefficients


def with_ranges(model: Coefficients, residuals: Sequence[Residual]) -> Coefficients:
    """Add the ranges that hold most of the measurements that the model did not see."""
    by_spread: dict[str, list[float]] = defaultdict(list)
    for r in residuals:
        m, launched = r.measured, r.measured.launched()
        if m.clock != "gpu":
            continue
        name = f"{launched.family}-{launched.direction}"
        if m.variant in UNFUSED:
            by_spread[name].append(m.us / r.gpu_us)
            continue
        by_spread[name].append(_own_us(m) / r.own_us)
        around = r.gpu_us - r.own_us
        if around > 0 and m.single:
            by_spread["around"].append((m.us - _own_us(m)) / around)
    spreads = {name: reach(ratios) for name, ratios in sorted(by_spread.items())}
    for name in (*model.backends, "math-backward", "naive-backward"):
        spreads.setdefault(name, UNSEEN)
    return replace(model, spreads=spreads, hosts=host_spreads(model, residuals))


def _own_us(m: Measured) -> float:
    """Return what a fused backend's own kernels took."""
    own = [us for step, us in steps_of(m) if step.fused is not None] if m.single else []
    return sum(own) or m.us


def reach(ratios: Sequence[float]) -> Spread:
    """Return the range of a GPU's time: the quantiles, or what holds the most within the widest range."""
    low, high = _quantiles(ratios, MARGIN, LEAST)
    if high > WIDEST * low:
        starts = [one for one in np.linspace(low, high / WIDEST, 50) if one <= 1 / (1 + LEAST)]
        low = max(starts, key=lambda start: _inside(ratios, start, start * WIDEST))
        high = low * WIDEST
    return _rounded(low, high)


def _quantiles(ratios: Sequence[float], margin: float, least: float) -> tuple[float, float]:
    low, high = np.quantile(ratios, COVERAGE)
    return min(low / margin, 1 / (1 + least)), max(high * margin, 1 + least)


def _rounded(low: float, high: float) -> Spread:
    return Spread(float(f"{low:.3f}"), float(f"{high:.3f}"))


def _inside(ratios: Sequence[float], low: float, high: float) -> float:
    """Return how many ratios a range holds; of ranges that hold as many, the one around 1 is better."""
    held = sum(low <= one <= high for one in ratios)
    return held - abs(math.log(low * high)) / 10


def host_spreads(model: Coefficients, residuals: Sequence[Residual]) -> dict[str, HostCost]:
    """Return the hosts' costs with the range that holds most of the measurements that were left out."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for r in residuals:
        m = r.measured
        if m.clock != "host":
            continue
        name = f"{'unfused' if m.variant in UNFUSED else m.variant}-{m.direction}"
        cost = r.model.hosts[name]
        floor = floor_us(cost, m.launched().operations)
        if floor > r.gpu_us:
            ratios[name].append(m.us / larger(r.gpu_us + cost.cold_us, floor, cost.sharpness))
    found = {}
    for name, cost in model.hosts.items():
        ends = UNSEEN_HOST
        if name in ratios:
            ends = _rounded(*_quantiles(ratios[name], HOST_MARGIN, HOST_LEAST))
        found[name] = replace(cost, low=ends.low, high=ends.high)
    return found
