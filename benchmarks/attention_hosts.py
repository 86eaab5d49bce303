"""The fit of what the host adds to a benchmark's time of a call.

Benchmarks clear the cache before each call, and the GPU does that while the host launches the call: what
launching takes longer is the least time that they measure.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
from attention_truth import Measured, the_machine

from tracehunch.predict.roofline.coefficients import Coefficients, HostCost
from tracehunch.predict.roofline.dims import FUSED
from tracehunch.predict.roofline.host import floor_us
from tracehunch.predict.roofline.price import step_us
from tracehunch.predict.roofline.schedule import larger

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Row = tuple[float, int, float]

NOISE: Final[Mapping[str, float]] = {"forward": 0.25, "backward": 0.1}
"""Logarithm of an error up to which it counts by its square, beyond linearly: a host is late by about as much
each time, but autograd's part of a backward has outliers."""

COLD_US: Final = 3.0
"""What a call takes longer when the cache is cleared before. Source: 40 fused forwards on an H200, timed so
and one right after the other: 1 to 4 us."""

UNSEEN: Final = (1 / 1.7, 1.7)

LAUNCH_US: Final = 24.0
"""What a further operation takes to launch, where only single ones were measured."""

SHARPNESS: Final = 4.0

GRIDS: Final[Mapping[str, Sequence[float]]] = {
    "forward": np.arange(10.0, 61.0, 0.5).tolist(),
    "backward": np.arange(100.0, 451.0, 5.0).tolist(),
}
"""Where the fit looks for `first_us`."""


def fit_hosts(measured: Iterable[Measured], model: Coefficients) -> dict[str, HostCost]:
    """Fit what the host adds to each backend's calls, and to the unfused variants' together."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for m in measured:
        if m.clock == "host":
            name = f"{m.variant if m.fused else 'unfused'}-{m.direction}"
            prices = [step_us(step, the_machine(), model) for step in m.launched().steps]
            groups[name].append((sum(us or 0.0 for us in prices), m.launched().operations, m.us))
    found = {}
    for backend, (direction, grid) in itertools.product(FUSED, GRIDS.items()):
        name = f"{backend}-{direction}"
        tried = (HostCost(COLD_US, first, LAUNCH_US, SHARPNESS, *UNSEEN) for first in grid)
        found[name] = _best(groups[name], tried, NOISE[direction])
    slow = (
        HostCost(0.0, float(first), float(further), SHARPNESS, *UNSEEN)
        for first, further in itertools.product((10, 20, 40, 60, 80), np.arange(12.0, 36.0, 0.5))
    )
    found["unfused-forward"] = unfused = _best(groups["unfused-forward"], slow, NOISE["forward"])
    # autograd's part of a backward is that of a fused one
    autograd = found["efficient-backward"].first_us - found["efficient-forward"].first_us
    found["unfused-backward"] = replace(unfused, first_us=unfused.first_us + autograd)
    return found


def _best(rows: Sequence[Row], tried: Iterable[HostCost], noise: float) -> HostCost:
    """Return the cost that comes closest to what was measured."""
    return min(tried, key=lambda cost: sum(_error(cost, row, noise) for row in rows))


def _error(cost: HostCost, row: Row, noise: float) -> float:
    gpu, operations, us = row
    told = larger(gpu + cost.cold_us, floor_us(cost, operations), cost.sharpness)
    return math.sqrt(1 + (math.log(told / us) / noise) ** 2)
