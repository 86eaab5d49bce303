"""What people wait for: the host, or the GPU behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehunch.compare.model import ScopePair
    from tracehunch.facts.model import ScopeFacts


def waits_for_host(scope: ScopeFacts) -> bool:
    """Whether the host takes longer than the GPU, so that its time is what people wait for."""
    wall, busy = _number(scope, "wall_time"), _number(scope, "gpu_busy")
    return wall is not None and (busy is None or wall > busy)


def gain_us(pair: ScopePair) -> float:
    """By how much a call takes longer, after less before: the host or the GPU, whichever takes longer."""
    return _longest(pair.after) - _longest(pair.before)


def _longest(scope: ScopeFacts) -> float:
    return max(_number(scope, "wall_time") or 0.0, _number(scope, "gpu_busy") or 0.0)


def _number(scope: ScopeFacts, key: str) -> float | None:
    value = scope.value(key)
    return float(value) if isinstance(value, int | float) else None
