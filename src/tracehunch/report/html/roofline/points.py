"""What a roofline shows: kernels as points, the GPU's peaks as roofs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tracehunch.facts.model import ScopeFacts
    from tracehunch.hardware import Gpu

_FORMATS: Final = ("fp8", "bf16", "fp16", "tf32")


@dataclass(frozen=True, slots=True)
class Point:
    """A kernel under its op: FLOPs and bytes a call of the scope, rates over all of its time."""

    name: str
    op: str
    time_us: float
    flops: int
    n_bytes: int
    flop_rate: float
    bandwidth: float
    bound: str
    percent: float | None
    on_matrix_units: bool
    dtype: str

    @property
    def intensity(self) -> float:
        """FLOPs for each byte to and from memory."""
        return self.flops / self.n_bytes


@dataclass(frozen=True, slots=True)
class Roof:
    """A peak of the GPU in FLOP/s, and its memory's in bytes/s, which it meets at the ridge."""

    name: str
    flop_rate: float
    bandwidth: float

    @property
    def ridge(self) -> float:
        """The FLOPs for each byte from which on computing limits."""
        return self.flop_rate / self.bandwidth


def points_of(scope: ScopeFacts) -> list[Point]:
    """Return the kernels whose FLOPs, bytes and time are known, the most time first."""
    found = []
    for use in scope.kernels:
        work = use.work
        if work.flops is None or not work.hbm_bytes or not work.achieved_bandwidth:
            continue
        found.append(
            Point(
                name=use.name,
                op=use.op,
                time_us=use.gpu_time_us,
                flops=work.flops,
                n_bytes=work.hbm_bytes,
                flop_rate=float(work.achieved_flops or 0),
                bandwidth=float(work.achieved_bandwidth),
                bound=work.bound or "",
                percent=work.percent_of_peak,
                on_matrix_units=use.identity.unit in ("tensor-core", "mfma"),
                dtype=use.identity.dtype or "",
            )
        )
    return found


def roofs_of(gpu: Gpu, points: list[Point]) -> list[Roof]:
    """Return the peaks that the kernels have to do with: fp32, and the formats on the matrix units."""
    used = {point.dtype for point in points if point.on_matrix_units}
    roofs = [Roof("fp32", gpu.fp32_flops, gpu.bandwidth)]
    for word in _FORMATS:
        peak = gpu.matrix_peak(word)
        if word in used and peak is not None:
            roofs.append(Roof(f"{word} matrix units", peak, gpu.bandwidth))
    if len(roofs) == 1 and (peak := gpu.matrix_peak("bf16")) is not None:
        roofs.append(Roof("bf16 matrix units", peak, gpu.bandwidth))
    return roofs
