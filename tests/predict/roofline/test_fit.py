"""The fit itself: it reproduces what ships, and holds on shapes that it did not see."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

import pytest

from tracehunch.predict.roofline.coefficients import coefficients

if TYPE_CHECKING:
    from types import ModuleType


def test_what_ships_is_what_the_measurements_say(attention_fit: ModuleType) -> None:
    model, shipped = attention_fit.fit(attention_fit.all_measurements()), coefficients()
    for name, cost in model.costs.items():
        assert shipped.costs[name].tile_us == pytest.approx(cost.tile_us, rel=0.02), name
    for name, step in model.steps.items():
        assert shipped.steps[name].bytes_factor == pytest.approx(step.bytes_factor, rel=0.02, abs=1e-3), name


def test_shapes_left_out_are_predicted(attention_fit: ModuleType) -> None:
    measured = attention_fit.all_measurements()
    part = attention_fit.folds(measured)[0]
    model = attention_fit.fit([m for m in measured if m.shape not in part])
    unseen = [m for m in measured if m.shape in part and m.clock == "host"]
    errors = [abs(math.log(attention_fit.middle_us(model, m)[0] / m.us)) for m in unseen]
    assert len(errors) > 30
    assert median(errors) < 0.15


def test_folds_keep_a_shape_together_and_lose_none(attention_fit: ModuleType) -> None:
    measured = attention_fit.all_measurements()
    parts = attention_fit.folds(measured)
    assert sum(len(part) for part in parts) == len(set.union(*parts)) == len({m.shape for m in measured})
