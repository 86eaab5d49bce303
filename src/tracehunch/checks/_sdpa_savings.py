"""What SDPA calls would save without a known hazard: their time against that expected of the call mended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracehunch.predict.sdpa import SdpaCall, TensorSpec
    from tracehunch.predict.traced import Group, TracedHazard


@dataclass(frozen=True, slots=True)
class Saving:
    """Time of a call as it ran (mean), and the upper end of what is expected of it mended."""

    measured_us: float
    expected_us: float

    @property
    def per_call_us(self) -> float:
        """What a call would save."""
        return max(self.measured_us - self.expected_us, 0.0)


def saving_of(group: Group, hazard: TracedHazard) -> Saving | None:
    """Return what calls would save; None where the hazard costs no time of its own, or it cannot be told."""
    mended = _MENDED.get(hazard.hazard.id)
    times = [call.gpu_us for call in group.calls if call.gpu_us is not None]
    if mended is None or not times:
        return None
    from tracehunch.predict.forecast import forecast  # noqa: PLC0415  # sixty modules load if used
    from tracehunch.predict.roofline import AttentionTime  # noqa: PLC0415  # likewise
    from tracehunch.predict.traced.times import is_plausible  # noqa: PLC0415  # likewise

    if not is_plausible(hazard.case.call):
        return None
    expected = forecast("auto", mended(hazard.case.call), hazard.case.env, clock="gpu").time
    if not isinstance(expected, AttentionTime):
        return None
    return Saving(float(np.mean(times)), expected.high_us)


def _causal(call: SdpaCall) -> SdpaCall:
    return replace(call, mask=None, is_causal=True, mask_content="unknown")


def _grouped(call: SdpaCall) -> SdpaCall:
    return replace(call, k=_one_head(call.k), v=_one_head(call.v), enable_gqa=True)


def _one_head(given: TensorSpec) -> TensorSpec:
    batch, _, length, width = given.shape
    return replace(given, shape=(batch, 1, length, width))


_MENDED: Final[Mapping[str, Callable[[SdpaCall], SdpaCall]]] = {
    "explicit-causal-mask": _causal,
    "square-mask": _causal,
    "expanded-kv-decode": _grouped,
}
"""Hazard -> the call as it should be made. The time of math's is told by sdpa-math-fallback."""
