"""What changed over time, in words: the same for a terminal, Markdown and a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.compare.over_time.calls import ALONE, KEPT
from tracehunch.compare.over_time.model import COMPUTE
from tracehunch.report.over_time_facts import FactText, fact_texts
from tracehunch.report.over_time_ranks import are_many, numbers_told, texts_told
from tracehunch.report.ranks_words import ranks_text
from tracehunch.trace.model import ABSENT
from tracehunch.units import count, elide, join, plural, printable, time_us
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.model import Drift, OverTime, Place, Run, Shift
    from tracehunch.verdict import Finding

SHOWN: Final = 8
"""Changes told in full."""
_NAMES: Final = 3
SCOPE_WIDTH: Final = 40


@dataclass(frozen=True, slots=True)
class ShiftText:
    """One change, ready to be laid out. ``runs`` are the ranks that show it."""

    severity: str
    head: str
    cost: str
    facts: tuple[FactText, ...]
    also_facts: str
    causes: tuple[str, ...]
    findings: tuple[str, ...]
    around: str
    runs: str


def shift_texts(report: OverTime) -> list[ShiftText]:
    """Return all changes, those of ranks that show the same once; the worst first."""
    return [shift_text(some, several=len(report.runs) > 1) for some in shift_groups(report)]


def shift_groups(report: OverTime) -> list[list[tuple[Run, Shift]]]:
    """Return the same changes with the ranks that show each."""
    alike: dict[tuple[object, ...], list[tuple[Run, Shift]]] = {}
    for run in report.runs:
        for shift in run.shifts:
            alike.setdefault(_same(shift), []).append((run, shift))
    return sorted(alike.values(), key=lambda some: worst_first([shift for _, shift in some]))


def counts_text(texts: Sequence[ShiftText]) -> str:
    """Return how many changes are warnings, and how many notes."""
    loud = sum(one.severity != "note" for one in texts)
    parts = [(loud, "warning"), (len(texts) - loud, "note")]
    return ", ".join(plural(number, what) for number, what in parts if number)


def _same(shift: Shift) -> tuple[object, ...]:
    """Say when two ranks show the same: in a scope, at a step, the same way, led by the same fact."""
    place = shift.place
    where = (place.step if place.step is not None else place.call) if place else None
    way = (shift.cost_us is None, (shift.cost_us or 0.0) > 0)
    return shift.scope, shift.kind, where, way, shift.drifts[0].key, shift.drifts[0].every


def worst_first(shifts: Sequence[Shift]) -> tuple[int, float]:
    """Sort key of shifts that are told together."""
    worst = max(shifts, key=lambda one: (SEVERITIES.index(one.severity), one.cost_us or 0.0))
    return -SEVERITIES.index(worst.severity), -(worst.cost_us or 0.0)


def shift_text(some: Sequence[tuple[Run, Shift]], *, several: bool) -> ShiftText:
    """Return one change in words; ``several``: whether ranks have to be named."""
    run, shift = min(some, key=lambda pair: worst_first([pair[1]]))
    facts, also_facts = fact_texts(sorted(some, key=lambda pair: pair[0] is not run))
    return ShiftText(
        severity=shift.severity,
        head=_head(run, shift),
        cost=_costs(some, shift),
        facts=facts,
        also_facts=also_facts,
        causes=texts_told(some, lambda one: [cause.text for cause in one.causes]),
        findings=texts_told(some, _findings, after=True),
        around=join([_around(name, some) for name, _ in shift.also[:_NAMES]]),
        runs=runs_text([other for other, _ in some]) if several else "",
    )


def runs_text(runs: Sequence[Run]) -> str:
    """Return which ranks: each by its label, of many the stretches of numbers."""
    ranks = [run.rank for run in runs if run.rank is not None and run.label == f"rank {run.rank}"]
    if are_many(runs) and len(ranks) == len(runs):
        return ranks_text(ranks)
    return join([run.label for run in runs])


def _head(run: Run, shift: Shift) -> str:
    scope = elide(printable(shift.scope), SCOPE_WIDTH)
    what = _what(shift)
    if shift.kind == "turns":
        drift = shift.drifts[0]
        return f"{scope}: every {_ordinal(drift.every or 0)} {_unit(drift)} {what}"
    if shift.kind == "trend":
        return f"{scope}: {what} all the time"
    assert shift.place is not None
    return f"{scope}: {what} {since_text(shift.place, run, shift.scope)}"


def _what(shift: Shift) -> str:
    if shift.kind == "turns":
        return "is slower" if (shift.cost_us or 0) > 0 else "is faster" if shift.cost_us else "differs"
    if any(one.key == KEPT for one in shift.drifts):
        return "keeps more memory"
    if shift.cost_us is None:
        return "does other work"
    if not _on_host(shift):
        longer = "longer" if shift.cost_us > 0 else "shorter"
        return f"gets {longer} on the GPU" if shift.kind == "trend" else f"{longer} on the GPU"
    if shift.kind == "trend":
        return "gets slower" if shift.cost_us > 0 else "gets faster"
    return "slower" if shift.cost_us > 0 else "faster"


def _on_host(shift: Shift) -> bool:
    return any(one.key == "wall_time" for one in shift.drifts)


def _unit(drift: Drift) -> str:
    return "step" if drift.levels and drift.levels[0].first.step is not None else "call"


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def place_text(place: Place, run: Run) -> str:
    """Return where a change begins: the step (else the call), and the cycle where there are several."""
    where = f"call {count(place.call)}" if place.step is None else f"step {count(place.step)}"
    if any(notice.code == "steps-restart" for notice in run.notices) or len(run.cycles) > 1:
        return f"{where} (cycle {place.cycle + 1} of {len(run.cycles)})"
    return where


def since_text(place: Place, run: Run, scope: str) -> str:
    """Return when a scope changed: ``from step 12 on``, or between which steps, as far as was recorded."""
    where = place_text(place, run)
    before = _last_before(place, run, scope)
    return f"from {where} on" if before is None else f"from between steps {count(before)} and {where[5:]} on"


def _last_before(place: Place, run: Run, scope: str) -> int | None:
    """Return the step of a scope's call before one; None where every step in between was recorded."""
    if place.step is None or any(notice.code == "steps-restart" for notice in run.notices):
        return None
    calls = [one.step for cycle in run.cycles for name, one in cycle.scopes.items() if name == scope]
    before = [int(one) for steps in calls for one in steps.tolist() if ABSENT != one < place.step]
    if not before:
        return None
    last = max(before)
    steps = [one.step for cycle in run.cycles for one in cycle.scopes.values() if one.kind == "step"]
    recorded = {int(one) for some in steps for one in some.tolist() if last < one < place.step}
    return last if len(recorded) < place.step - last - 1 else None


def _costs(some: Sequence[tuple[Run, Shift]], shift: Shift) -> str:
    """Return what it costs, of each rank where they differ."""
    costs = {run.label: one.cost_us for run, one in some if one.cost_us is not None}
    lead = next((one for one in shift.drifts if one.key in ("wall_time", "gpu_time", COMPUTE, ALONE)), None)
    if not costs:
        return ""
    told = numbers_told(costs, signed_us, len(some))
    told += "" if lead is None or lead.key == "wall_time" else " of GPU time"
    if shift.kind == "trend" and lead is not None and lead.slope is not None:
        slopes = {
            run.label: drift.slope
            for run, one in some
            for drift in one.drifts
            if drift.key == lead.key and drift.slope is not None
        }
        return f"{told} from first to last, {numbers_told(slopes, signed_us, len(some))} a {_unit(lead)}"
    return f"{told} {'each time' if shift.kind == 'turns' else 'a call'}"


def signed_us(us: float) -> str:
    """Return a difference of times with its sign."""
    return f"{'+' if us > 0 else '-'}{time_us(abs(us))}"


def _around(name: str, some: Sequence[tuple[Run, Shift]]) -> str:
    costs = {run.label: cost for run, shift in some for scope, cost in shift.also if scope == name and cost}
    told = f" ({numbers_told(costs, signed_us, len(some))} a call)" if costs else ""
    return f"{elide(printable(name), SCOPE_WIDTH)}{told}"


def _findings(shift: Shift) -> list[str]:
    found = []
    for what, some in (("came", shift.came), ("went", shift.went)):
        loud = [one for one in some if one.severity != "note"]
        if loud:
            found.append(f"{what}: {join(list(dict.fromkeys(_finding(one) for one in loud)))}")
    return found


def _finding(finding: Finding) -> str:
    return finding.id
