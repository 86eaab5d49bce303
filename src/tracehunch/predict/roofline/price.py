"""GPU time of single launches, by the model of time: fused kernels, products, and what moves memory."""

from typing import Final

from tracehunch.predict.roofline.coefficients import Coefficients, StepCost
from tracehunch.predict.roofline.fused import fused_us
from tracehunch.predict.roofline.machine import Machine
from tracehunch.predict.roofline.steps import Step

_FITS: Final = 0.6
"""Share of the second-level cache up to which what moves is found there; at twice as much, nothing is."""


def step_us(step: Step, seen: Machine, model: Coefficients) -> float | None:
    """Return the time of a step in us, `None` where the model has no cost for it."""
    if step.fused is not None:
        return fused_us(step.fused, seen, model)
    if step.us is not None:
        return step.us / (seen.fp32_speed if step.kind == "product-fp32" else seen.matrix_speed)
    cost = model.steps.get(step.kind)
    return None if cost is None else moving_us(step, cost, seen)


def moving_us(step: Step, cost: StepCost, seen: Machine) -> float:
    """Return the time of a kernel or copy that moves memory."""
    near, far = near_and_far(step.bytes, seen)
    return (
        cost.start_us
        + (cost.near_factor * near + cost.far_factor * far) / seen.bandwidth
        + (cost.element_ps * step.masked / 1e6 + cost.row_ns * step.rows / 1e3) / seen.general
        + cost.length_ns * step.length / 1e3 / seen.clock
    )


def near_and_far(moved: int, seen: Machine) -> tuple[float, float]:
    """Return how many bytes go to and from the second-level cache, and how many to and from memory."""
    room = _FITS * (seen.gpu.l2_bytes or 0)
    found = min(max(2 - moved / room, 0.0), 1.0) if room else 0.0
    return moved * found, moved * (1 - found)
