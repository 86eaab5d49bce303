"""What limits a call: arithmetic, memory or the host; and the least time that the GPU's peaks allow."""

from dataclasses import dataclass
from typing import Literal

from tracehunch.facts.work import limit
from tracehunch.predict.roofline.machine import Ceilings

Bound = Literal["compute", "memory", "overhead"]


@dataclass(frozen=True, slots=True)
class Roofline:
    """The least time of some work in us, and which roof it is.

    `intensity` is FLOPs per byte; above `ridge` arithmetic takes longer than memory.
    """

    compute_us: float
    memory_us: float
    intensity: float
    ridge: float
    bound: Bound
    source: str

    @property
    def us(self) -> float:
        """The longer of the two."""
        return max(self.compute_us, self.memory_us)


def roofline(flops: int, moved_bytes: int, ceilings: Ceilings, *, floor_us: float = 0.0) -> Roofline:
    """Return the roofline of work that needs so many FLOPs and moves so many bytes.

    `floor_us` is what launching it takes in any case; work that is shorter is bound by overhead.
    """
    compute, memory = 1e6 * flops / ceilings.flops, 1e6 * moved_bytes / ceilings.bandwidth
    bound: Bound = limit(flops, moved_bytes, ceilings.flops, ceilings.bandwidth)
    if max(compute, memory) < floor_us:
        bound = "overhead"
    sources = dict.fromkeys((ceilings.flops_source, ceilings.bandwidth_source))
    return Roofline(
        compute,
        memory,
        flops / moved_bytes if moved_bytes else 0.0,
        ceilings.ridge,
        bound,
        " and ".join(sources),
    )
