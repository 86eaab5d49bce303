"""Time that many small launches cost beside the work that they launch."""

from typing import Any, Final

import numpy as np

from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64

_WARNING: Final = 0.01
_WORD: Final = 0.001
"""Parts of the time that the whole trace took, as those of ``_weight`` are parts of its GPU's work."""


def awaited(facts: Facts, rows: Any) -> Int64:
    """Find the pieces of idle time in which a GPU had run out of work and waited for one of some rows."""
    idle = idle_of(facts)
    pieces = idle.of(IdleCause.LAUNCH)
    found: Int64 = pieces[np.isin(idle.next_row[pieces], rows)]
    return found


def length_us(facts: Facts, pieces: Int64) -> float:
    """Sum the lengths of pieces of idle time, the mean over the devices that a program uses."""
    idle = idle_of(facts)
    return float(idle.length_us[pieces].sum()) / max(np.unique(idle.device).size, 1)


def is_worth_a_warning(facts: Facts, scope: ScopeFacts, per_call_us: float) -> bool:
    """Tell whether elapsed time per call of a scope is worth a warning."""
    return _share(facts, scope, per_call_us) >= _WARNING


def is_worth_a_word(facts: Facts, scope: ScopeFacts, per_call_us: float) -> bool:
    """Tell whether elapsed time per call of a scope is worth a note."""
    return _share(facts, scope, per_call_us) >= _WORD


def _share(facts: Facts, scope: ScopeFacts, per_call_us: float) -> float:
    """All calls together, as part of the time that the trace covers."""
    window = facts.tree.window
    elapsed_us = (window.end_ns - window.start_ns) / 1e3
    total = per_call_us * len(scope.scope.calls)
    return total / elapsed_us if elapsed_us > 0 else float(total > 0)
