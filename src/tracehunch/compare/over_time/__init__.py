"""A long capture read as one run: which facts changed from cycle to cycle, from call to call, when and why.

Files are read one at a time; what is kept of each is small.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracehunch.compare.over_time.causes import causes_of
from tracehunch.compare.over_time.cycles import cycle_of
from tracehunch.compare.over_time.drift import FALSE_ALARMS, drifts_of, tests_of
from tracehunch.compare.over_time.model import Cycle, Drift, OverTime, Run, Shift, Unread
from tracehunch.compare.over_time.runs import Ordered, order
from tracehunch.compare.over_time.series import points_of
from tracehunch.compare.over_time.shifts import shifts_of
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.series import Points
    from tracehunch.trace.model import Notice
    from tracehunch.verdict import Finding

__all__ = ["Cycle", "Drift", "OverTime", "Run", "Shift", "Unread", "cycle_of", "over_time"]


def over_time(
    cycles: Sequence[Cycle], unread: Sequence[Unread] = (), notices: Sequence[Notice] = ()
) -> OverTime:
    """Put cycles in order, a run a rank, and say what changed; ``unread`` and ``notices`` are passed on."""
    runs, left_out = order(cycles)
    points = [points_of(run.cycles) for run in runs]
    tests = sum(tests_of(one) for of_run in points for one in of_run)
    done = [_run(run, of_run, tests, several=len(runs) > 1) for run, of_run in zip(runs, points, strict=True)]
    return OverTime(tuple(done), tuple(unread), tuple(notices), FALSE_ALARMS, tuple(left_out))


def _run(run: Ordered, points: Sequence[Points], tests: int, *, several: bool) -> Run:
    scopes = {one.name: one for one in points}
    drifts = [drift for one in points for drift in drifts_of(one, tests)]
    shifts = [_explained(shift, scopes[shift.scope], run.cycles) for shift in shifts_of(drifts, scopes)]
    return Run(
        rank=run.rank,
        label=_label(run, several=several),
        cycles=run.cycles,
        shifts=tuple(sorted(shifts, key=_worst_first)),
        drifts=tuple(drifts),
        calls={
            name: sum(len(cycle.scopes[name]) for cycle in run.cycles if name in cycle.scopes)
            for name in scopes
        },
        tried=sum(tests_of(one) for one in points),
        notices=run.notices,
    )


def _label(run: Ordered, *, several: bool) -> str:
    rank = "" if run.rank is None else f"rank {run.rank}"
    process = f"process {run.process}" if run.process else ""
    label = ", ".join(filter(None, (rank, process)))
    return label or ("the rest" if several else "")


def _worst_first(shift: Shift) -> tuple[int, float, int]:
    start = shift.place.start_ns if shift.place else 0
    return -SEVERITIES.index(shift.severity), -(shift.cost_us or 0.0), start


def _explained(shift: Shift, points: Points, cycles: Sequence[Cycle]) -> Shift:
    came, went = _findings(shift, cycles)
    return replace(shift, causes=causes_of(shift, points, cycles), came=came, went=went)


def _findings(shift: Shift, cycles: Sequence[Cycle]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings in the shift's scopes that came (all cycles after have them), and that went."""
    if shift.place is None or len(cycles) < 2:
        return (), ()
    names = {shift.scope, *(name for name, _ in shift.also)}
    levels = shift.drifts[0].levels
    before = cycles[levels[0].first.cycle : shift.place.cycle]
    after = cycles[shift.place.cycle + 1 : levels[-1].last.cycle + 1]
    after = after or cycles[shift.place.cycle : levels[-1].last.cycle + 1]
    return _only(after, before, names), _only(before, after, names)


def _only(here: Sequence[Cycle], there: Sequence[Cycle], scopes: set[str]) -> tuple[Finding, ...]:
    if not here or not there:
        return ()
    known = {_same(one) for cycle in there for one in cycle.findings}
    always = set.intersection(*({_same(one) for one in cycle.findings} for cycle in here))
    return tuple(
        one
        for one in here[0].findings
        if one.scope in scopes and _same(one) in always and _same(one) not in known
    )


def _same(finding: Finding) -> tuple[str, str, str]:
    return finding.id, finding.scope, finding.subject
