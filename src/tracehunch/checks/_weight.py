"""Whether something takes enough of a trace's time to be worth a warning, or a word."""

from typing import Final

from tracehunch.checks._activities import uses
from tracehunch.checks._scopes import busy_us
from tracehunch.facts.model import Facts, ScopeFacts

_WARNING: Final = 0.01
_WORD: Final = 0.001
"""Parts of the work in the whole trace: a large part of a small scope is still a small matter."""


def is_material(facts: Facts, scope: ScopeFacts, per_call_us: float) -> bool:
    """Tell whether a time per call of a scope is worth a warning."""
    return _share(facts, scope, per_call_us) >= _WARNING


def is_noticeable(facts: Facts, scope: ScopeFacts, per_call_us: float) -> bool:
    """Tell whether a time per call of a scope is worth a note."""
    return _share(facts, scope, per_call_us) >= _WORD


def _share(facts: Facts, scope: ScopeFacts, per_call_us: float) -> float:
    """All calls together, as part of what the trace keeps busy without its collectives, which mostly wait."""
    whole = next((busy_us(other) for other in facts.scopes if other.scope.kind == "whole"), 0.0)
    waiting = sum(use.total_us for use in uses(facts) if use.identity.algorithm == "collective")
    total = per_call_us * len(scope.scope.calls)
    return total / (whole - waiting) if whole > waiting else float(total > 0)
