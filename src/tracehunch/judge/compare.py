"""Whether what was seen bears out a claim."""

import math
from typing import Final, cast

from tracehunch.facts.model import Value
from tracehunch.guess.model import Claim

ABOUT: Final = 0.10
"""What ``~`` allows on either side."""


def fits(claim: Claim, seen: Value) -> bool:
    """Whether claim and value are of one kind: both numbers, or both text."""
    return _is_text(claim.expected) == _is_text(seen)


def holds(claim: Claim, seen: Value) -> bool:
    """Whether a claim, not about what leads, holds of a value of its kind (``fits``).

    Of several texts (the backends of a scope that uses two) the order does not matter.
    """
    if isinstance(seen, (str, tuple)):
        return _texts(seen) == _texts(cast("str | tuple[str, ...]", claim.expected))
    low, high = _bounds(claim)
    if claim.relation in ("<", ">"):
        return low < seen < high
    return low <= seen <= high or (claim.relation == "==" and math.isclose(seen, low, rel_tol=1e-9))


def excess(claim: Claim, seen: Value) -> float:
    """By how much a number exceeds its claim, in its unit; negative below it, 0 within it or for text."""
    if not isinstance(seen, (int, float)) or _is_text(claim.expected):
        return 0.0
    low, high = _bounds(claim)
    return max(seen - high, 0.0) + min(seen - low, 0.0)


def _bounds(claim: Claim) -> tuple[float, float]:
    """Return the smallest and the largest value that the claim allows."""
    if claim.relation == "in":
        return cast("tuple[float, float]", claim.expected)
    value = float(cast("float", claim.expected))
    if claim.relation == "~":
        return value * (1 - ABOUT), value * (1 + ABOUT)
    return (
        -math.inf if claim.relation in ("<", "<=") else value,
        math.inf if claim.relation in (">", ">=") else value,
    )


def _is_text(value: Value | tuple[float, float]) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple) and all(isinstance(one, str) for one in value))


def _texts(value: str | tuple[str, ...]) -> frozenset[str]:
    return frozenset([value] if isinstance(value, str) else value)
