"""What changed over time, in words: the same for a terminal, Markdown and a page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.compare.over_time.calls import COMPUTE, KEPT, NAMES
from tracehunch.units import (
    count,
    elide,
    flop_count,
    join,
    percent,
    printable,
    share,
    size,
    time_us,
)
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracehunch.compare.over_time.model import Drift, OverTime, Place, Run, Shift
    from tracehunch.facts.model import Value
    from tracehunch.verdict import Finding

SHOWN: Final = 8
"""Changes told in full."""
_FACTS: Final = 5  # facts of a change with a line of their own
_NAMES: Final = 3
SCOPE_WIDTH: Final = 40

DERIVED: Final = frozenset(
    {"gpu_activities", "any_copies", "copies.dtod", "copies.htod", "copies.dtoh", "copies.ptop", "launches",
     "gpu_idle", "cpu_time", "outside", "hbm_bytes", "allocated_bytes"}
)  # fmt: skip
"""Facts that follow from others: named, without a line of their own, where there are others."""

_SAID: Final = {
    "outside": "time in no op",
    "grid_blocks": "thread blocks",
    "input_elements": "input elements",
    KEPT: "memory kept",
    COMPUTE: "GPU time without collectives",
    "calls": "calls a step",
    NAMES: "names that ran",
}


_FORMATS: Final[Mapping[str, Callable[[float], str]]] = {
    "us": time_us,
    "bytes": size,
    "flop": flop_count,
    "ratio": lambda value: share(value, 1.0),
}


@dataclass(frozen=True, slots=True)
class FactText:
    """One fact that changed: its name, from what to what, by how much; ``series`` for a sparkline."""

    name: str
    change: str
    share: str
    series: tuple[float | None, ...]


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
    alike: dict[tuple[object, ...], list[tuple[Run, Shift]]] = {}
    for run in report.runs:
        for shift in run.shifts:
            alike.setdefault(_same(shift), []).append((run, shift))
    groups = sorted(alike.values(), key=lambda some: worst_first([shift for _, shift in some]))
    return [_text(some, several=len(report.runs) > 1) for some in groups]


def _same(shift: Shift) -> tuple[object, ...]:
    """Say when two ranks show the same: in the same scope, at the same step, led by the same fact."""
    place = shift.place
    where = (place.step if place.step is not None else place.call) if place else None
    return shift.scope, shift.kind, where, shift.drifts[0].key, shift.drifts[0].every


def worst_first(shifts: Sequence[Shift]) -> tuple[int, float]:
    """Sort key of shifts that are told together."""
    worst = max(shifts, key=lambda one: (SEVERITIES.index(one.severity), one.cost_us or 0.0))
    return -SEVERITIES.index(worst.severity), -(worst.cost_us or 0.0)


def _text(some: Sequence[tuple[Run, Shift]], *, several: bool) -> ShiftText:
    run, shift = min(some, key=lambda pair: worst_first([pair[1]]))
    lead = [one for one in shift.drifts if one.key not in DERIVED and one.key != NAMES]
    shown = (lead or list(shift.drifts))[:_FACTS]
    rest = [one for one in shift.drifts if one not in shown and one.key != NAMES]
    return ShiftText(
        severity=shift.severity,
        head=_head(run, shift),
        cost=_cost(shift),
        facts=tuple(_fact(one) for one in shown),
        also_facts=", ".join(f"{name_of(one)} {_change(one)}" for one in rest),
        causes=tuple(cause.text for cause in shift.causes),
        findings=tuple(_findings(shift)),
        around=join([_around(*one) for one in shift.also[:_NAMES]]),
        runs=join([other.label for other, _ in some]) if several else "",
    )


def _head(run: Run, shift: Shift) -> str:
    scope = elide(printable(shift.scope), SCOPE_WIDTH)
    what = _what(shift)
    if shift.kind == "turns":
        drift = shift.drifts[0]
        return f"{scope}: every {_ordinal(drift.every or 0)} {_unit(drift)} {what}"
    if shift.kind == "trend":
        return f"{scope}: {what} all the time"
    assert shift.place is not None
    return f"{scope}: {what} from {place_text(shift.place, run)} on"


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


def _cost(shift: Shift) -> str:
    if shift.cost_us is None:
        return ""
    lead = next((one for one in shift.drifts if one.key in ("wall_time", "gpu_time", COMPUTE)), None)
    hidden = "" if lead is None or lead.key == "wall_time" else " of GPU time"
    told = f"{signed_us(shift.cost_us)}{hidden}"
    if shift.kind == "trend" and lead is not None and lead.slope is not None:
        return f"{told} from first to last, {signed_us(lead.slope)} a {_unit(lead)}"
    return f"{told} {'each time' if shift.kind == 'turns' else 'a call'}"


def signed_us(us: float) -> str:
    """Return a difference of times with its sign."""
    return f"{'+' if us > 0 else '-'}{time_us(abs(us))}"


def _around(name: str, cost: float | None) -> str:
    told = f" ({signed_us(cost)} a call)" if cost else ""
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


def _fact(drift: Drift) -> FactText:
    grown = "" if drift.share is None else f"{'+' if drift.share > 0 else ''}{percent_of(drift.share)}"
    return FactText(name_of(drift), _change(drift), grown, drift.series)


def percent_of(value: float) -> str:
    """Return a change as a percentage, of more than tenfold as a multiple."""
    return f"{value + 1:,.0f}x" if value >= 9 else f"{'-' if value < 0 else ''}{percent(abs(value) * 100)}"


def name_of(drift: Drift) -> str:
    """Return what a report calls a fact."""
    return _SAID.get(drift.key, drift.key)


def _change(drift: Drift) -> str:
    first, last = drift.levels[0].value, drift.levels[-1].value
    word = " / " if drift.kind == "turns" else " -> "
    return word.join(value_text(drift.unit, one) for one in (first, last))


def value_text(unit: str, value: Value) -> str:
    """Return a value of a fact for people."""
    if isinstance(value, tuple):
        return join([printable(one, 60) for one in value])
    if isinstance(value, str):
        return printable(value, 60)
    if unit in _FORMATS:
        return _FORMATS[unit](value)
    return count(int(value) if float(value).is_integer() else round(value, 1))
