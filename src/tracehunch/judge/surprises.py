"""Broken claims -> surprises: explained or not, how severe, and the time at stake."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tracehunch.facts.model import Fact, Facts
from tracehunch.guess.model import Claim
from tracehunch.judge.compare import excess
from tracehunch.judge.confront import Told
from tracehunch.judge.explain import EXPERT, explaining
from tracehunch.judge.misspelt import slip_in
from tracehunch.trace.model import UNKNOWN_NS
from tracehunch.tree import NONE, Scope
from tracehunch.verdict import SEVERITIES, Finding, Severity, Surprise

_ACTIVITY_COUNTS: Final = frozenset({
    "gpu_activities", "kernels", "copies", "copies.dtod", "copies.htod", "copies.dtoh", "copies.ptop",
    "copy_kernels", "any_copies", "memsets",
})  # fmt: skip

COSTLY: Final = _ACTIVITY_COUNTS | {
    "leaf_ops", "launches", "launch_time", "queue_delay", "syncs", "sync_time", "allocations", "gpu_time",
    "gpu_busy", "gpu_idle", "wall_time", "cpu_time", "copy_time", "copy_bytes", "allocated_bytes",
    "hbm_bytes", "flops", "compiled.kernels", "compiled.graph_breaks", "compiled.recompiles",
    "compiled.last_compile", "compiled.last_recompile", "compiled.compile_time",
}  # fmt: skip
"""Keys of which less is better; of the rest no direction is known to be."""

_SUFFICIENT: Final = 0.5
"""Share of the excess time that findings must account for to explain it."""

_MAX_EVIDENCE: Final = 100


def surprise(
    told: Told, facts: Facts, findings: Sequence[Finding], *, expert_holds: bool | None = None
) -> Surprise:
    """Say what became of a broken claim.

    ``expert_holds``: whether the expert guess for the same key and scope held; None where there is none.
    """
    claim, fact, scope = told.claim, told.fact, told.scope.scope
    more = excess(claim, fact.value)
    found = () if expert_holds is False else explaining(claim, more, scope, facts, findings)
    saving = sum(cause.time_at_stake_us * times for cause, times in found)
    if fact.unit == "us" and saving < _SUFFICIENT * more:
        found = ()  # a copy of 5 us is no explanation for 20 ms
    causes = [cause for cause, _ in found]
    explained = tuple(dict.fromkeys(cause.id for cause in causes)) or ((EXPERT,) if expert_holds else ())
    return Surprise(
        claim=claim,
        seen=fact.value,
        severity=_severity(claim, more, explained=bool(explained)),
        explained_by=explained,
        time_at_stake_us=_time_of_excess(fact, more, facts) if fact.unit == "us" or not saving else saving,
        evidence=_evidence(fact, causes, scope, facts),
        slip=slip_in(claim, facts),
    )


def rank(found: Surprise) -> tuple[float, int, bool]:
    """Sort key: time at stake, then severity, the unexplained before the explained."""
    return (-found.time_at_stake_us, -SEVERITIES.index(found.severity), bool(found.explained_by))


def _severity(claim: Claim, more: float, *, explained: bool) -> Severity:
    """How bad a broken claim is.

    What a person or a baseline claimed is an assertion: an error when it came out worse, a warning when
    better. The tool's own guesses are at most a warning, an explained one a note. Less confidence lowers it
    by a step.
    """
    if claim.who in ("textbook", "expert"):
        level = 0 if explained else 1
    else:
        level = 1 if more < 0 and claim.key in COSTLY else 2
    return SEVERITIES[max(level - {"high": 0, "medium": 1, "low": 2}[claim.confidence], 0)]


def _time_of_excess(fact: Fact, more: float, facts: Facts) -> float:
    """Microseconds a call that the excess takes; 0 where there is none, or it costs no time that is known."""
    if more <= 0 or fact.key not in COSTLY or not isinstance(fact.value, (int, float)) or fact.value <= 0:
        return 0.0
    if fact.unit == "us":
        return float(more)
    if fact.key in _ACTIVITY_COUNTS:
        return _durations_us(fact, facts) * min(more / fact.value, 1.0)
    return 0.0


def _durations_us(fact: Fact, facts: Facts) -> float:
    durations = facts.tree.trace.dur_ns[np.asarray(fact.rows, dtype=np.int64)]
    return float(durations[durations != UNKNOWN_NS].sum()) / 1e3


def _evidence(fact: Fact, causes: Sequence[Finding], scope: Scope, facts: Facts) -> tuple[int, ...]:
    """Positions of the events that the fact rests on, else of what explains it, else of the scope's calls.

    The last is for what is not there: that a scope has no copy shows in all of its calls.
    """
    trace = facts.tree.trace
    found = trace.events(fact.rows) or tuple(event for cause in causes for event in cause.evidence)
    calls = trace.events([call.row for call in scope.calls if call.row != NONE])
    return tuple(dict.fromkeys(found or calls))[:_MAX_EVIDENCE]
