"""What the host adds to a benchmark's time of a call: small calls wait for their launch.

A benchmark clears the cache before each call, so kernels take a little longer than in a trace; the GPU clears
it while the host launches the call. What launching takes longer than that is the least time that is measured,
whatever the GPU does.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tracehunch.predict.roofline.coefficients import Coefficients, HostCost, Spread
from tracehunch.predict.roofline.dims import UNFUSED
from tracehunch.predict.roofline.machine import Machine
from tracehunch.predict.roofline.schedule import larger

if TYPE_CHECKING:
    from tracehunch.predict.roofline.time import AttentionTime, Launched

_OTHER_HOST: Final = Spread(1 / 1.5, 1.5)
"""How much wider the host's part is on a machine whose host is not known."""


def with_host(
    launched: "Launched", seen: Machine, estimate: "AttentionTime", model: Coefficients
) -> "AttentionTime":
    """Return an estimate of the GPU's time with what the host adds."""
    name = "unfused" if launched.backend in UNFUSED else launched.backend
    cost = model.hosts[f"{name}-{launched.direction}"]
    floor = floor_us(cost, launched.operations)
    low, high = cost.low * floor, cost.high * floor
    if not seen.reference:
        low, high = low * _OTHER_HOST.low, high * _OTHER_HOST.high
    bound = floor > estimate.mid_us
    return replace(
        estimate,
        low_us=larger(estimate.low_us + cost.cold_us, low, cost.sharpness),
        mid_us=larger(estimate.mid_us + cost.cold_us, floor, cost.sharpness),
        high_us=larger(estimate.high_us + cost.cold_us, high, cost.sharpness),
        confidence="medium" if bound and estimate.confidence == "high" else estimate.confidence,
        why=(*estimate.why, *((f"the host takes about {floor:.0f} us to launch it",) if bound else ())),
        clock="host",
    )


def floor_us(cost: HostCost, operations: int) -> float:
    """Return the least time of a call that launches so many operations."""
    return cost.first_us + cost.further_us * (operations - 1)
