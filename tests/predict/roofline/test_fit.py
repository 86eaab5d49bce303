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
    measured, shipped = attention_fit.all_measured(), coefficients()
    steps = attention_fit.fit_steps(measured)
    assert steps.keys() == shipped.steps.keys()
    for name, step in steps.items():
        assert shipped.steps[name].far_factor == pytest.approx(step.far_factor, rel=0.02, abs=1e-3), name
    for name, host in attention_fit.fit_hosts(measured, shipped).items():
        assert shipped.hosts[name].first_us == pytest.approx(host.first_us, rel=0.05), name


def test_shapes_left_out_are_predicted(attention_fit: ModuleType) -> None:
    measured = [m for m in attention_fit.all_measured() if m.source == "activities" and m.fused]
    part = attention_fit.folds(measured)[0]
    seen = attention_fit.fused_times([m for m in measured if m.shape not in part])
    model = attention_fit.fit_kernels(seen, rounds=10)
    unseen = attention_fit.fused_times([m for m in measured if m.shape in part])
    errors = [
        abs(math.log(attention_fit.fused_us(case, attention_fit.the_machine(), model) / us))
        for case, us, _ in unseen
    ]
    assert len(errors) >= 10
    assert median(errors) < 0.15


def test_folds_keep_a_shape_together_and_lose_none(attention_fit: ModuleType) -> None:
    measured = attention_fit.all_measured()
    parts = attention_fit.folds(measured)
    assert sum(len(part) for part in parts) == len(set.union(*parts)) == len({m.shape for m in measured})
