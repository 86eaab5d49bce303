"""How long a fused kernel would need for the same attention, estimated from what the trace shows.

Calibrated on measured forwards of an H200: float16 and bfloat16 kernels that take more than 30 us lie 1.3
to 8 times above the roofline (the larger of FLOPs over peak and bytes over bandwidth) for the better of the
fused backends, below that fixed costs of some microseconds dominate. The range below is deliberately wide,
and what is claimed as saved uses its upper end.
"""

from dataclasses import dataclass
from typing import Final

_ABOVE_ROOFLINE: Final = (1.5, 6.0)
_FIXED_US: Final = (3.0, 10.0)
_MATRIX_EFFICIENCY: Final = (0.35, 0.95)
"""Share of peak at which a library's matrix kernels of some size run."""
_OF_UNFUSED_PRODUCTS: Final = (0.2, 2.0)
_BACKWARD_PRODUCTS: Final = 2.5


@dataclass(frozen=True, slots=True)
class Estimate:
    """Time of one fused call, as a range, and the words for how it was estimated."""

    low_us: float
    high_us: float
    how: str


def from_work(
    flops: float, moved_bytes: float, peak_flops: float, bytes_per_second: float | None
) -> Estimate:
    """From the call's own FLOPs and bytes and the GPU's peaks."""
    floor = flops / peak_flops * 1e6
    if bytes_per_second:
        floor = max(floor, moved_bytes / bytes_per_second * 1e6)
    return Estimate(*_around(floor, floor), "from the recorded shapes and the GPU's peaks")


def from_matrix_time(
    matrix_us: float, their_peak_flops: float, fused_peak_flops: float, *, causal: bool
) -> Estimate:
    """From how long the fallback's own matrix products took, where shapes were not recorded.

    A causal fused kernel skips the masked half of the products, which the fallback computes.
    """
    part = 0.5 if causal else 1.0
    low, high = (
        matrix_us * efficiency * their_peak_flops / fused_peak_flops * part
        for efficiency in _MATRIX_EFFICIENCY
    )
    how = (
        "from the time of the fallback's own matrix products and the GPU's peaks, since shapes were not "
        "recorded"
    )
    return Estimate(*_around(low, high), how)


def from_unfused_matrix_time(matrix_us: float, *, backward: bool) -> Estimate:
    """From the products of an attention by hand, where sizes or the GPU are not known.

    Of 109 fused forwards on an H200 87 % took 0.2 to 2 times as long as the products of the same
    attention by hand, with inputs of the same type. A fused backward makes five products, a forward two.
    """
    low, high = (matrix_us * part for part in _OF_UNFUSED_PRODUCTS)
    more = _BACKWARD_PRODUCTS if backward else 1.0
    how = "from the time of its own matrix products, since shapes or the peaks of this device are not known"
    return Estimate(low * more, high * more, how)


def from_matrix_time_alone(matrix_us: float) -> Estimate:
    """Where nothing is known of the hardware: a fused kernel needs no more than the matrix products took."""
    how = "from the time of the fallback's own matrix products, since the peaks of this device are not known"
    return Estimate(0.0, matrix_us, how)


def _around(low_floor_us: float, high_floor_us: float) -> tuple[float, float]:
    return (
        low_floor_us * _ABOVE_ROOFLINE[0] + _FIXED_US[0],
        high_floor_us * _ABOVE_ROOFLINE[1] + _FIXED_US[1],
    )
