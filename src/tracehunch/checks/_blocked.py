"""The idle GPU time that host calls are to blame for, and what part of a trace a time is."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._once import once
from tracehunch.checks._scopes import by_call_us, sums_by_call
from tracehunch.facts.intervals import Cover
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.trace.model import Int64
from tracehunch.tree.keys import Lookup


@dataclass(frozen=True, slots=True)
class Blame:
    """What host rows in a scope lead to: pieces of idle time, and their length in each call of the scope.

    The length is at most the time spent inside the rows; it is the mean over the devices.
    """

    pieces: Int64
    by_call_us: NDArray[np.float64]

    @classmethod
    def of(cls, facts: Facts, scope: ScopeFacts, rows: Any, *causes: IdleCause) -> Self:
        """``causes``: as what the partition of idle time may count it."""
        idle = idle_of(facts)
        pieces = _by_host_row(facts).having(rows)
        pieces = pieces[np.isin(idle.cause[pieces], causes)]
        length = idle.length_us[pieces] / max(idle.n_devices, 1)
        found = sums_by_call(facts, scope, idle.host_row[pieces], length)
        return cls(pieces, np.minimum(found, by_call_us(facts, scope, rows)))

    def and_launches_in(self, facts: Facts, scope: ScopeFacts, spans: Cover) -> Self:
        """Add the pieces in which the GPU waits for launches, as far as they lie in some spans of time."""
        idle = idle_of(facts)
        pieces = idle.of(IdleCause.LAUNCH)
        inside = (spans.until(idle.end_ns[pieces]) - spans.until(idle.start_ns[pieces])) / 1e3
        pieces, inside = pieces[inside > 0], inside[inside > 0] / max(idle.n_devices, 1)
        more = sums_by_call(facts, scope, idle.host_row[pieces], inside)
        return type(self)(np.union1d(self.pieces, pieces), self.by_call_us + more)


@once
def _by_host_row(facts: Facts) -> Lookup:
    return Lookup.of(idle_of(facts).host_row)


def part_of_trace(facts: Facts, scope: ScopeFacts, per_call_us: float) -> float:
    """Return a time per call, all calls together, as part of the time that was recorded."""
    recorded = facts.tree.window.recorded_ns / 1e3
    return per_call_us * len(scope.scope.calls) / recorded if recorded > 0 else 0.0


def typical_us(times_us: NDArray[np.float64]) -> float:
    """Return the time in the middle (the lower of two): one bad call does not move it."""
    return float(np.sort(times_us)[(times_us.size - 1) // 2])
