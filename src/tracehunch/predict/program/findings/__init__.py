"""Findings that can be known before a program runs, by the rules of thumb of a trace's checks."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from tracehunch.predict.environment import Environment
from tracehunch.predict.program.calls import Program
from tracehunch.predict.program.findings._run import Compiled, Run
from tracehunch.predict.program.findings.attention import unfused
from tracehunch.predict.program.findings.casts import round_trips
from tracehunch.predict.program.findings.copies import copies
from tracehunch.predict.program.findings.layouts import turned
from tracehunch.predict.program.findings.loops import optimizers, row_loops
from tracehunch.predict.program.findings.overhead import waiting
from tracehunch.predict.program.findings.products import fp32_products
from tracehunch.predict.program.findings.sdpa import known_hazards, math_fallbacks
from tracehunch.predict.program.findings.waits import slow_copies, stalls
from tracehunch.predict.program.model import CallGuess, Foreseen, Totals

__all__ = ["Compiled", "findings"]

_Look = Callable[[Run], Iterator[Foreseen]]
_ALL: Final[tuple[_Look, ...]] = (
    waiting,
    unfused,
    math_fallbacks,
    known_hazards,
    fp32_products,
    turned,
    stalls,
    slow_copies,
)
_EAGER: Final[tuple[_Look, ...]] = (round_trips, copies, row_loops, optimizers)
"""What a compiler merges, so that it is no matter of compiled code."""
_SEVERITIES: Final = ("error", "warning", "note")


def findings(
    calls: Sequence[CallGuess],
    program: Program,
    env: Environment,
    totals: Totals,
    compiled: Compiled | None = None,
) -> tuple[Foreseen, ...]:
    """Return all findings, small ones too: the worst first, then the most time at stake."""
    run = Run(tuple(calls), program, env, totals, compiled)
    if env.device != "cuda" or not run.calls:
        return ()
    found = [one for look in _ALL for one in look(run)]
    eager = run.eager()
    found += [one for look in _EAGER if eager.calls for one in look(eager)]
    return tuple(sorted(found, key=lambda one: (_SEVERITIES.index(one.severity), -one.time_at_stake_us)))
