"""GPU time of the unfused variants: the sum of their steps, each by its bytes, FLOPs and elements."""

from collections.abc import Iterable

from tracehunch.predict.roofline.coefficients import Coefficients, StepCost
from tracehunch.predict.roofline.machine import Machine
from tracehunch.predict.roofline.steps import Step


def step_us(step: Step, cost: StepCost, machine: Machine) -> float:
    """Return what one step takes on a GPU, in us."""
    peak = machine.fp32_flops if step.kind.endswith("fp32") else machine.matrix_flops
    return (
        cost.start_us
        + cost.bytes_factor * step.bytes / machine.bandwidth
        + cost.flops_factor * step.flops / peak
        + (cost.element_ps * step.masked / 1e6 + cost.row_ns * step.rows / 1e3) / machine.general
        + cost.depth_ns * step.depth / 1e3 / machine.clock
    )


def unfused_us(steps: Iterable[Step], machine: Machine, model: Coefficients) -> float:
    """Return what all steps take together, in us."""
    return sum(step_us(step, model.steps[step.kind], machine) for step in steps)
