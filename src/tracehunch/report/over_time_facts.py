"""The facts of a change, a line each; where ranks differ, a line for each rank or the range over many."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tracehunch.compare.over_time.calls import ALONE, KEPT, NAMES
from tracehunch.compare.over_time.model import COMPUTE
from tracehunch.report.over_time_ranks import are_many, by_rank, joined
from tracehunch.units import count, flop_count, join, percent, printable, share, size, time_us

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tracehunch.compare.over_time.model import Drift, Run, Shift
    from tracehunch.facts.model import Value

_FACTS: Final = 5  # facts of a change with a line of their own

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
    ALONE: "GPU time beside no collective",
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
    """One fact that changed: its name, from what to what, by how much; ``series`` for a sparkline.

    ``runs`` are the ranks that it holds for; "" where it holds for all that show the change.
    """

    name: str
    change: str
    share: str
    series: tuple[float | None, ...]
    runs: str = ""


def fact_texts(some: Sequence[tuple[Run, Shift]]) -> tuple[tuple[FactText, ...], str]:
    """Return the lines of the facts that say most, and the others in words; the leading rank's order."""
    found: dict[str, dict[str, Drift]] = {}
    for run, shift in some:
        for drift in shift.drifts:
            found.setdefault(drift.key, {})[run.label] = drift
    shown = leading(list(found))
    rest = [key for key in found if key not in shown and key != NAMES]
    lines = tuple(line for key in shown for line in _lines(found[key], len(some)))
    return lines, ", ".join(_in_words(found[key], len(some)) for key in rest)


def leading(keys: Sequence[str]) -> list[str]:
    """Return the keys that have a line of their own."""
    lead = [key for key in keys if key not in DERIVED and key != NAMES]
    return (lead or list(keys))[:_FACTS]


def _lines(drifts: Mapping[str, Drift], ranks: int) -> list[FactText]:
    told = {label: f"{change_of(one)} {_grown(one)}" for label, one in drifts.items()}
    groups = by_rank(told, ranks)
    if are_many(groups):
        return [_range(list(drifts.values()), len(drifts))]
    first = {text: drifts[next(label for label, one in told.items() if one == text)] for _, text in groups}
    return [replace(_fact(first[text]), runs=labels) for labels, text in groups]


def _fact(drift: Drift) -> FactText:
    return FactText(name_of(drift), change_of(drift), _grown(drift), drift.series)


def _grown(drift: Drift) -> str:
    return "" if drift.share is None else signed_percent(drift.share)


def signed_percent(value: float) -> str:
    """Return a change as a percentage with its sign."""
    return f"{'+' if value > 0 else ''}{percent_of(value)}"


def _range(drifts: Sequence[Drift], ranks: int) -> FactText:
    """Return one line for many ranks: from the least to the most on both sides."""
    drift, label = drifts[0], f"{ranks} ranks"
    sides = [[one.levels[at].value for one in drifts] for at in (0, -1)]
    numbers = [[one for one in side if isinstance(one, int | float)] for side in sides]
    if any(len(side) != len(drifts) for side in numbers):
        return FactText(name_of(drift), "differs", "", (), label)
    between = [
        " to ".join(dict.fromkeys(value_text(drift.unit, one) for one in (min(side), max(side))))
        for side in numbers
    ]
    shares = [one.share for one in drifts if one.share is not None]
    ends = (min(shares), max(shares)) if shares else ()
    grown = " to ".join(dict.fromkeys(map(signed_percent, ends)))
    return FactText(name_of(drift), _word(drift).join(between), grown, drift.series, label)


def _in_words(drifts: Mapping[str, Drift], ranks: int) -> str:
    told = {label: change_of(one) for label, one in drifts.items()}
    if are_many(by_rank(told, ranks)):
        line = _range(list(drifts.values()), len(drifts))
        return f"{line.name} {line.change} ({line.runs})"
    return f"{name_of(next(iter(drifts.values())))} {joined(told, ranks)}"


def percent_of(value: float) -> str:
    """Return a change as a percentage, of more than tenfold as a multiple."""
    return f"{value + 1:,.0f}x" if value >= 9 else f"{'-' if value < 0 else ''}{percent(abs(value) * 100)}"


def name_of(drift: Drift) -> str:
    """Return what a report calls a fact."""
    return _SAID.get(drift.key, drift.key)


def _word(drift: Drift) -> str:
    return " / " if drift.kind == "turns" else " -> "


def change_of(drift: Drift) -> str:
    """Return a fact's first and last level."""
    first, last = drift.levels[0].value, drift.levels[-1].value
    return _word(drift).join(value_text(drift.unit, one) for one in (first, last))


def value_text(unit: str, value: Value) -> str:
    """Return a value of a fact for people."""
    if isinstance(value, tuple):
        return join([printable(one, 60) for one in value])
    if isinstance(value, str):
        return printable(value, 60)
    if unit in _FORMATS:
        return _FORMATS[unit](value)
    return count(int(value) if float(value).is_integer() else round(value, 1))
