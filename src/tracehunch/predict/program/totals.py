"""The whole run: sums, the host's time, what it waits for, and the ops that lead."""

from collections.abc import Sequence
from typing import Final

from tracehunch.predict.program.amounts import SPREAD, amounts
from tracehunch.predict.program.calls import Obstacle
from tracehunch.predict.program.counts import count_ranges
from tracehunch.predict.program.host import host_time
from tracehunch.predict.program.model import Amounts, CallGuess, HostTime, Leader, OpRow, RunBound, Totals

_CLOSE: Final = 1.3
"""Up to how many times the other's time host and GPU are too close to tell which is waited for."""

_CLEAR: Final = 1.25
"""How many times the next one's time an op must take to lead for sure."""

_LEADERS: Final = 5


def totals(calls: Sequence[CallGuess], obstacles: Sequence[Obstacle] = ()) -> Totals:
    """Return the sums over calls, and what the run waits for."""
    found, host = amounts(calls), host_time(calls)
    stopped = any(obstacle.stops for obstacle in obstacles)
    ranges = count_ranges(calls, found)
    at_least = bool(found.untold) or stopped
    return Totals(found, host, run_bound(found, host), at_least, SPREAD, stopped, ranges)


def run_bound(found: Amounts, host: HostTime) -> RunBound | None:
    """Return whether the GPU or the host sets the pace; None where the GPU's time is not known.

    A time that leaves some calls out is "at least": it can show that the GPU sets the pace, not the host.
    """
    if found.time is None:
        return None
    gpu, cpu = found.time.mid_us, host.time.mid_us
    if gpu > _CLOSE * cpu:
        return "gpu"
    if cpu > _CLOSE * gpu:
        return None if found.untimed else "launch"
    return "either"


def leading(rows: Sequence[OpRow]) -> tuple[Leader, ...]:
    """Return the ops that take most of the GPU's time, by descending time."""
    timed = [(row.op, row.amounts.gpu_time_us or 0.0) for row in rows]
    whole = sum(us for _, us in timed)
    if not whole:
        return ()
    behind = [*(us for _, us in timed[1:]), 0.0]
    found = [
        Leader(op, us, us / whole, clear=us >= _CLEAR * next_us)
        for (op, us), next_us in zip(timed, behind, strict=True)
    ]
    return tuple(found[:_LEADERS])
