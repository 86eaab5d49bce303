"""What did not change over time, folded, and what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.html.escape import name, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.over_time_facts import name_of, value_text
from tracehunch.report.over_time_quiet import header_lines, quiet_lines, warnings
from tracehunch.units import count, plural, time_us

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.over_time.model import Cycle, Drift, OverTime, Run

_SCOPES: Final = 100
_CYCLES: Final = 400
"""Rows of one table; JSON has all."""


def rest_section(report: OverTime) -> Section | None:
    """Return what is constant or only varies; None where nothing is known to be."""
    rows = quiet_lines(report)
    if not rows:
        return None
    listed = "".join(f"<dt>{text(label)}</dt><dd>{text(said)}</dd>" for label, said in rows)
    return Section("rest", "The rest", f'<dl class="facts">{listed}</dl>{_constants(report)}')


def _constants(report: OverTime) -> str:
    """Return the constant facts of each scope with their values, folded."""
    scopes: dict[str, dict[str, dict[str, Drift]]] = {}
    for run in report.runs:
        for drift in run.drifts:
            if drift.kind == "constant":
                scopes.setdefault(drift.scope, {}).setdefault(drift.key, {})[run.label] = drift
    if not scopes:
        return ""
    heads = (Head("scope"), Head("facts", number=True), Head("constant facts", wide=True))
    cells = [
        [Cell(name(scope)), Cell(count(len(keys)), float(len(keys))), Cell(_values(keys, len(report.runs)))]
        for scope, keys in list(scopes.items())[:_SCOPES]
    ]
    more = f'<p class="dim">{count(len(scopes) - _SCOPES)} more scopes in JSON.</p>' * (len(scopes) > _SCOPES)
    made = table(heads, cells, caption="Facts that are constant, by scope", sortable=True)
    return f"<details><summary>Constant facts by scope</summary>{made}{more}</details>"


def _values(keys: Mapping[str, Mapping[str, Drift]], ranks: int) -> str:
    return text(", ".join(_value(drifts, ranks) for drifts in keys.values()))


def _value(drifts: Mapping[str, Drift], ranks: int) -> str:
    """Return a fact with its value, where all ranks that have it agree, and how many these are."""
    first = next(iter(drifts.values()))
    said = {value_text(one.unit, one.levels[0].value) for one in drifts.values() if one.levels}
    value = f" {said.pop()}" if len(said) == 1 else " (ranks differ)" if said else ""
    some = f" on {len(drifts)} of {ranks} ranks" if len(drifts) < ranks else ""
    return f"{name_of(first)}{value}{some}"


def warnings_section(report: OverTime) -> Section | None:
    """Return what was lost, left out or could not be read; None where nothing was."""
    items = "".join(f"<li>{text(one)}</li>" for one in warnings(report))
    return Section("warnings", "Warnings", f"<ul>{items}</ul>", aside="about the files") if items else None


def files_section(report: OverTime) -> Section:
    """Return what was read: in a line a rank, then every cycle."""
    rows = "".join(f"<dt>{text(label)}</dt><dd>{text(said)}</dd>" for label, said in header_lines(report))
    return Section("files", "Files", f'<dl class="facts">{rows}</dl>{_cycles(report)}')


def _cycles(report: OverTime) -> str:
    cycles = [(run, at, cycle) for run in report.runs for at, cycle in enumerate(run.cycles, 1)]
    if not cycles:
        return ""
    heads = (
        Head("rank"),
        Head("cycle", number=True),
        Head("steps", number=True),
        Head("recorded", number=True, meaning="from the first event to the last"),
        Head("file", wide=True),
    )
    several = len(report.runs) > 1
    cells = [_cycle(run if several else None, at, cycle) for run, at, cycle in cycles[:_CYCLES]]
    more = f'<p class="dim">{count(len(cycles) - _CYCLES)} more in JSON.</p>' * (len(cycles) > _CYCLES)
    made = table(heads, cells, caption="Cycles in order of time", sortable=True)
    return f"<details><summary>{plural(len(cycles), 'file')} in order of time</summary>{made}{more}</details>"


def _cycle(run: Run | None, at: int, cycle: Cycle) -> Sequence[Cell]:
    recorded_us = (cycle.end_ns - cycle.start_ns) / 1e3
    steps = [int(one) for scope in cycle.scopes.values() if scope.kind == "step" for one in scope.step]
    first, last = (min(steps), max(steps)) if steps else (None, None)
    return [
        Cell(text(run.label) if run else "", None if run is None or run.rank is None else float(run.rank)),
        Cell(count(at), float(at)),
        Cell("" if first is None else f"{first} to {last}", None if first is None else float(first)),
        Cell(text(time_us(recorded_us)), recorded_us),
        Cell(name(cycle.source)),
    ]
