"""Whether something takes enough of a trace's time to be worth a warning, or a word."""

from typing import Any, Final

import numpy as np

from tracehunch.checks._activities import on_gpu, uses
from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._once import once
from tracehunch.checks._scopes import by_call_us, durations_us, spans_ns, total_us
from tracehunch.facts.compiler import is_autotuning
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.verdict import Severity

_WARNING: Final = 0.01
_WORD: Final = 0.001
"""Parts of the work in the whole trace: a large part of a small scope is still a small matter."""
_CPU_WARNING: Final = 0.1
_CPU_CALLS: Final = 3
"""What a warning needs on a CPU, where other processes stretch any op: this part of the scope's time in the
middle one of at least so many calls, so that neither one bad call nor a little noise makes or hides it."""
_SPREAD: Final = 0.1
_SLOWED: Final = 3
"""How many times as long the host takes at most under the profiler (measured: 1.5, with stacks 2 to 2.5)."""


def severity(facts: Facts, scope: ScopeFacts, rows: Any, saved_us: float | None = None) -> Severity:
    """Say how bad it is that ``rows`` run in a scope; ``saved_us`` a call, where not all of their time goes.

    Rows are GPU activities or, in a trace of a CPU, ops.
    """
    times = by_call_us(facts, scope, rows)
    mean = float(times.mean())
    saved = mean if saved_us is None else saved_us
    if not is_material(facts, scope, saved):
        return "note"
    if on_gpu(facts):
        return "warning"
    start, end = spans_ns(facts, scope)
    part = np.median(times / np.maximum((end - start) / 1e3, 1e-3)) * (saved / mean if mean else 0.0)
    return "warning" if times.size >= _CPU_CALLS and part >= _CPU_WARNING else "note"


def severity_of_elapsed(facts: Facts, scope: ScopeFacts, rows: Any, saved_us: float) -> Severity:
    """Say how bad it is that ``rows`` run, by what a fix saves a call of the elapsed time as well.

    Where a GPU mostly waits for launches, a large part of its little work is still a small matter.
    """
    if not on_gpu(facts):
        return severity(facts, scope, rows, saved_us)
    elapsed = _work_us(facts) + idle_of(facts).total_us(IdleCause.LAUNCH)
    is_small = saved_us * len(scope.scope.calls) < _WARNING * elapsed
    return "note" if is_small else severity(facts, scope, rows)


def severity_of_slow(facts: Facts, scope: ScopeFacts, rows: Any, saved_us: float) -> Severity:
    """Say how bad it is that ``rows`` take longer than they might.

    A GPU that would wait for launches without the profiler, too, which slows the host, gains nothing.
    """
    waiting = float(np.median(idle_of(facts).by_call_us(scope, IdleCause.LAUNCH)))
    busy = scope.value("gpu_busy")
    if isinstance(busy, int | float) and busy + waiting > _SLOWED * busy:
        return "note"
    small = severity_of_elapsed(facts, scope, rows, saved_us) == "note"
    return "note" if small else severity(facts, scope, rows, saved_us)


def is_material(facts: Facts, scope: ScopeFacts, per_call_us: float) -> bool:
    """Tell whether a time per call of a scope is worth a warning."""
    return _share(facts, scope, per_call_us) >= _WARNING


def is_noticeable(facts: Facts, scope: ScopeFacts, per_call_us: float) -> bool:
    """Tell whether a time per call of a scope is worth a note."""
    return _share(facts, scope, per_call_us) >= _WORD


def on_average(times_us: Any) -> str:
    """`` on average`` where the calls that a mean was taken of differ so that it matters; else nothing."""
    mean = float(np.mean(times_us))
    return " on average" if np.ptp(times_us) > _SPREAD * mean else ""


def _share(facts: Facts, scope: ScopeFacts, per_call_us: float) -> float:
    """All calls together, as part of what the trace keeps busy.

    Collectives, which mostly wait, are left out, and the trial runs of torch.compile, which are not the
    program's.
    """
    total, whole = per_call_us * len(scope.scope.calls), _work_us(facts)
    return total / whole if whole > 0 else float(total > 0)


@once
def _work_us(facts: Facts) -> float:
    whole = next((total_us(facts, other) for other in facts.scopes if other.scope.kind == "whole"), 0.0)
    waiting = sum(use.total_us for use in uses(facts) if use.identity.algorithm == "collective")
    return whole - (waiting + _autotuning_us(facts))


def _autotuning_us(facts: Facts) -> float:
    rows = facts.tree.trace.gpu.row.astype(np.int64)
    return float(durations_us(facts.tree.trace, rows[is_autotuning(facts.tree, rows)]).sum())
