"""Time that many small launches cost beside the work that they launch."""

from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from tracehunch.checks._activities import on_gpu
from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._scopes import durations_us
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.units import time_us

_WARNING: Final = 0.01
_WORD: Final = 0.001
"""Parts of the time that the whole trace took, as those of ``_weight`` are parts of its GPU's work."""
_MOSTLY: Final = 0.5


def awaited(facts: Facts, rows: Any) -> Int64:
    """Find the pieces of idle time in which a GPU had run out of work and waited for one of some rows."""
    idle = idle_of(facts)
    pieces = idle.of(IdleCause.LAUNCH)
    found: Int64 = pieces[np.isin(idle.next_row[pieces], rows)]
    return found


def length_us(facts: Facts, pieces: Int64) -> float:
    """Sum the lengths of pieces of idle time, the mean over the devices that a program uses."""
    idle = idle_of(facts)
    return float(idle.length_us[pieces].sum()) / max(idle.n_devices, 1)


@dataclass(frozen=True, slots=True)
class Waited:
    """Idle time in which a GPU waited for launches that a fix does away with, a call."""

    us: float
    pieces: tuple[int, ...]

    @classmethod
    def of(cls, facts: Facts, scope: ScopeFacts, rows: Any, made_by: Any = None) -> Self:
        """Look it up for GPU rows; a CPU waits for nothing.

        ``made_by``: for each row the op that the fix does away with. No more than its time on the host counts
        then, since a gap also has host work in it that stays, and gaps that are mostly such work do not.
        """
        if not on_gpu(facts):
            return cls(0.0, ())
        pieces = awaited(facts, rows)
        calls = len(scope.scope.calls)
        if made_by is None:
            return cls(length_us(facts, pieces) / calls, tuple(pieces.tolist()))
        idle = idle_of(facts)
        order = np.argsort(rows)
        which = order[np.searchsorted(rows, idle.next_row[pieces], sorter=order)]
        ops, number = np.unique(np.asarray(made_by)[which], return_inverse=True)
        waited = np.bincount(number.reshape(-1), weights=idle.length_us[pieces], minlength=ops.size)
        goes = durations_us(facts.tree.trace, ops)
        mostly = goes >= _MOSTLY * waited
        counted = float(np.minimum(waited, goes)[mostly].sum()) / max(idle.n_devices, 1)
        return cls(counted / calls, tuple(pieces[mostly[number.reshape(-1)]].tolist()))

    def __str__(self) -> str:
        return f", and {time_us(self.us)} in which the GPU waits for their launches" if self.us else ""


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
