"""How long each backend that takes a call would need, where the GPU is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.predict.forecast import forecast
from tracehunch.predict.roofline import AttentionTime

if TYPE_CHECKING:
    from tracehunch.predict.environment import Backend
    from tracehunch.predict.traced.explain import Case


def expected_times(case: Case) -> dict[Backend, AttentionTime]:
    """Return the GPU time that is expected of a forward, by backend; of those that take the call."""
    found: dict[Backend, AttentionTime] = {}
    for answer in case.prediction.answers:
        if answer.accepted and answer.backend != "overrideable":
            time = forecast(answer.backend, case.call, case.env, clock="gpu").time
            if isinstance(time, AttentionTime):
                found[answer.backend] = time
    return found
