"""The ops and modules of a guessed program as tables for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import program_words as words
from tracehunch.report.layout import Column, Line, Span, View, heading, paragraph, table
from tracehunch.report.program_names import ATEN, room_for_names, short_names
from tracehunch.units import count, plural, printable, share, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.predict.program.model import Amounts, ModuleRow, OpRow, ProgramGuess

_WIDE: Final = 100
_DEPTH: Final = 3
"""Parts of a module's path down to which the table of modules goes."""
_NONE: Final = "0"

_NUMBERS: Final = (
    Column("calls"),
    Column("kernels"),
    Column("copies"),
    Column("memsets"),
    Column("GPU time"),
    Column("share"),
)
_OFTEN_EMPTY: Final = ("copies", "memsets")


def ops(guess: ProgramGuess, view: View, top: int) -> list[Line]:
    """Return the ops by GPU time; `top` is how many are listed."""
    rows = [row for row in guess.by_op if has_launches(row.amounts) or row.amounts.untold]
    if not rows:
        return []
    columns = [Column("op", "left", cut="middle"), *_NUMBERS, Column("bound", "left")]
    cells = [[row.op, *_numbers(row.amounts, guess), _bound(row)] for row in rows[:top]]
    columns, cells = _without_zeros(columns, cells)
    names = short_names([row.op for row in rows[:top]], room_for_names(columns, cells, view))
    cells = [[name, *row[1:]] for name, row in zip(names, cells, strict=True)]
    bare = any(row.op.startswith(ATEN) for row in rows[:top]) and not any(ATEN in name for name in names)
    aside = f"by GPU time, as a trace attributes launches{'; aten:: left out' if bare else ''}"
    return [*heading("Ops", aside), *table(columns, cells, view), *_more(len(rows) - top, "op", view)]


def modules(guess: ProgramGuess, view: View, top: int) -> list[Line]:
    """Return the modules, each with all inside it; `top` is how many are listed."""
    rows = [row for row in guess.modules if row.module and has_launches(row.amounts)]
    shown = [row for row in rows if row.module.count(".") < _DEPTH][:top]
    if not shown:
        return []
    columns = [Column("module", "left", cut="middle"), *_NUMBERS]
    if view.width >= _WIDE:
        columns.append(Column("type", "left", 30))
    columns, cells = _without_zeros(columns, [_module_cells(row, guess, view) for row in shown])
    names = short_names([_indented(row) for row in shown], room_for_names(columns, cells, view))
    cells = [[name, *row[1:]] for name, row in zip(names, cells, strict=True)]
    lines = [*heading("Modules", "with all inside them"), *table(columns, cells, view)]
    return [*lines, *_more(len(rows) - len(shown), "module", view)]


def has_launches(found: Amounts) -> bool:
    """Whether anything runs."""
    return bool(found.kernels or found.copies or found.memsets)


def _without_zeros(
    columns: Sequence[Column], cells: Sequence[Sequence[Span | str]]
) -> tuple[list[Column], list[list[Span | str]]]:
    """Leave out copies and memsets where no row has any: names need the room."""
    kept = [
        at
        for at, column in enumerate(columns)
        if column.heading not in _OFTEN_EMPTY or any(row[at] != _NONE for row in cells)
    ]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in cells]


def _indented(row: ModuleRow) -> str:
    return f"{'  ' * row.module.count('.')}{printable(row.module)}"


def _module_cells(row: ModuleRow, guess: ProgramGuess, view: View) -> list[Span | str]:
    cells: list[Span | str] = [_indented(row), *_numbers(row.amounts, guess)]
    return [*cells, printable(row.module_type)] if view.width >= _WIDE else cells


def _more(hidden: int, noun: str, view: View) -> list[Line]:
    if hidden <= 0:
        return []
    return paragraph(
        f"{plural(hidden, f'more {noun}')}; --top and --format json list all", view, indent=2, style="dim"
    )


def _numbers(found: Amounts, guess: ProgramGuess) -> list[Span | str]:
    least = ">= " if found.untold else ""
    whole = guess.totals.amounts.time
    time, part = words.UNKNOWN, words.UNKNOWN
    if found.time is not None:
        time = f"{'>= ' if found.untimed else ''}{time_us(found.time.mid_us)}"
        part = words.UNKNOWN if whole is None else share(found.time.mid_us, whole.mid_us)
    elif not has_launches(found) and not found.untold:
        time, part = "0 us", "0%"
    return [
        count(found.calls),
        f"{least}{count(found.kernels)}",
        f"{least}{count(found.copies)}",
        f"{least}{count(found.memsets)}",
        time,
        part,
    ]


def _bound(row: OpRow) -> str:
    return row.amounts.bound or "-"
