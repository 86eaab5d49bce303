"""How long each backend that takes a call would need, where the GPU is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.predict.forecast import forecast
from tracehunch.predict.roofline import AttentionTime

if TYPE_CHECKING:
    from tracehunch.predict.environment import Backend
    from tracehunch.predict.sdpa import SdpaCall
    from tracehunch.predict.traced.explain import Case

_MOST_SCORES: Final = 2**48
"""Scores of a call that some GPU could still compute in hours: more is a file that is wrong."""


def expected_times(case: Case) -> dict[Backend, AttentionTime]:
    """Return the GPU time that is expected of a forward, by backend; of those that take the call."""
    found: dict[Backend, AttentionTime] = {}
    if not is_plausible(case.call):
        return found
    for answer in case.prediction.answers:
        if answer.accepted and answer.backend != "overrideable":
            time = forecast(answer.backend, case.call, case.env, clock="gpu").time
            if isinstance(time, AttentionTime):
                found[answer.backend] = time
    return found


def is_plausible(call: SdpaCall) -> bool:
    """Whether a call's sizes are such that its time is worth a thought."""
    return call.q.numel // max(call.q.shape[-1], 1) * call.k.shape[-2] <= _MOST_SCORES
