"""What a change rests on: every fact of every rank that shows it, before and after, with the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.html.escape import code, text
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.over_time_facts import name_of, signed_percent, value_text
from tracehunch.units import count, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.model import Drift, Level, Place, Run, Shift

_MOST: Final = 400
"""Rows of one table; JSON has all."""
_HEADS: Final = (
    Head("fact"),
    Head("rank"),
    Head("before", number=True, meaning="of a time the median of these calls"),
    Head("calls", number=True, meaning="calls of the scope, or steps with several, that the value is of"),
    Head("after", number=True, meaning="of a time the median of these calls"),
    Head("calls after", number=True, meaning="calls of the scope, or steps with several"),
    Head("change", number=True, meaning="after over before, less 1"),
    Head("from", number=True, meaning="the first recorded call of the later level"),
    Head("by chance", number=True, meaning="chance of the like without a change, before correction"),
)


def evidence_table(some: Sequence[tuple[Run, Shift]]) -> str:
    """Return the table, folded: its rows are the ``facts`` of the change in JSON."""
    rows = [(run, drift) for run, shift in some for drift in shift.drifts]
    of_key = {key: at for at, key in enumerate(dict.fromkeys(drift.key for _, drift in rows))}
    rows.sort(key=lambda row: of_key[row[1].key])
    cells = [_row(run, drift, several=len(some) > 1) for run, drift in rows[:_MOST]]
    more = f'<p class="dim">{count(len(rows) - _MOST)} more in JSON.</p>' if len(rows) > _MOST else ""
    made = table(_HEADS, cells, caption="Evidence: facts before and after the change", sortable=True)
    ranks = f" of {len(some)} ranks" if len(some) > 1 else ""
    return f"<details><summary>Evidence: {plural(len(of_key), 'fact')}{ranks}</summary>{made}{more}</details>"


def _row(run: Run, drift: Drift, *, several: bool) -> list[Cell]:
    first, last = drift.levels[0], drift.levels[-1]
    return [
        Cell(code(name_of(drift))),
        Cell(text(run.label) if several else "", None if run.rank is None else float(run.rank)),
        *_level(drift.unit, first),
        *_level(drift.unit, last),
        Cell("" if drift.share is None else text(signed_percent(drift.share)), drift.share),
        _begins(drift.at[0] if drift.kind == "step" and drift.at else None),
        Cell("" if drift.p is None else f"{drift.p:.1g}", drift.p),
    ]


def _level(unit: str, level: Level) -> tuple[Cell, Cell]:
    value = level.value if isinstance(level.value, int | float) else None
    shown = text(value_text(unit, level.value))
    return Cell(shown, None if value is None else float(value)), Cell(count(level.calls), float(level.calls))


def _begins(place: Place | None) -> Cell:
    if place is None:
        return Cell("")
    if place.step is None:
        return Cell(f"call {count(place.call)}", float(place.call))
    return Cell(f"step {count(place.step)}", float(place.step))
