"""The guess of a whole program for a terminal: totals, the ops that cost, SDPA, findings, what is open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import program_words as words
from tracehunch.report.finding_texts import SEVERITY_STYLE
from tracehunch.report.layout import Column, Line, Span, View, draw, heading, paragraph, table
from tracehunch.report.program_compiled import compiled_lines
from tracehunch.units import count, elide, plural, printable, share, time_us

if TYPE_CHECKING:
    from tracehunch.predict.program.model import Amounts, Foreseen, ModuleRow, OpRow, ProgramGuess

_WIDE: Final = 100
_DEPTH: Final = 3
"""Parts of a module's path down to which the table of modules goes."""

_NUMBERS: Final = (
    Column("calls"),
    Column("kernels"),
    Column("copies"),
    Column("memsets"),
    Column("GPU time"),
    Column("share"),
)


def render(guess: ProgramGuess, view: View, *, top: int = 12, next_command: str = "") -> str:
    """Return the guess as text; `top` is how many ops and modules are listed."""
    lines: list[Line] = [
        *paragraph(words.title(guess), view, style="bold"),
        *paragraph(words.meaning(guess), view, style="dim"),
        (),
    ]
    for label, text in words.amounts(guess.totals):
        lines += paragraph(text, view, first=(Span(f"  {label:<10}", "dim"),), indent=12)
    lines += _ops(guess, view, top)
    lines += _modules(guess, view, top)
    if guess.compiled is not None:
        lines += compiled_lines(guess.compiled, view)
    lines += _sdpa(guess, view)
    lines += _findings(guess, view)
    lines += _untold(guess, view)
    if next_command:
        lines += [(), (Span("Next: ", "dim"), Span(printable(next_command), "bold"))]
    return draw(lines, view)


def _ops(guess: ProgramGuess, view: View, top: int) -> list[Line]:
    rows = [row for row in guess.by_op if _launches(row.amounts) or row.amounts.untold]
    if not rows:
        return []
    columns = [Column("op", "left", cut="middle"), *_NUMBERS, Column("bound", "left")]
    cells = [[elide(row.op, 44), *_numbers(row.amounts, guess), _bound(row)] for row in rows[:top]]
    lines = [*heading("Ops", "by GPU time, as a trace attributes launches"), *table(columns, cells, view)]
    return [*lines, *_more(len(rows) - top, "op", view)]


def _modules(guess: ProgramGuess, view: View, top: int) -> list[Line]:
    rows = [row for row in guess.modules if row.module and _launches(row.amounts)]
    shown = [row for row in rows if row.module.count(".") < _DEPTH]
    if not shown:
        return []
    columns = [Column("module", "left", cut="middle"), *_NUMBERS]
    if view.width >= _WIDE:
        columns.append(Column("type", "left", 30))
    cells = [_module_cells(row, guess, view) for row in shown[:top]]
    lines = [*heading("Modules", "with all inside them"), *table(columns, cells, view)]
    return [*lines, *_more(len(rows) - len(shown[:top]), "module", view)]


def _module_cells(row: ModuleRow, guess: ProgramGuess, view: View) -> list[Span | str]:
    indent = "  " * row.module.count(".")
    cells: list[Span | str] = [f"{indent}{printable(row.module)}", *_numbers(row.amounts, guess)]
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
    elif not _launches(found) and not found.untold:
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


def _launches(found: Amounts) -> bool:
    return bool(found.kernels or found.copies or found.memsets)


def _sdpa(guess: ProgramGuess, view: View) -> list[Line]:
    if not guess.sdpa:
        return []
    lines = heading("SDPA", "scaled_dot_product_attention: which backend answers, and why")
    for one in guess.sdpa:
        head, reasons = words.sdpa(one)
        lines += paragraph(head, view, first=("  ",), indent=4)
        for reason in reasons:
            lines += paragraph(reason, view, first=("    ",), indent=6, style="dim")
    return lines


def _findings(guess: ProgramGuess, view: View) -> list[Line]:
    found = guess.findings
    if not found:
        return [(), (Span("Findings", "bold"), Span("  none that can be known beforehand", "dim"))]
    lines = heading("Findings", "that can be known beforehand; warnings first, then by time at stake")
    for one in found:
        lines += _finding(one, view)
    return lines


def _finding(one: Foreseen, view: View) -> list[Line]:
    severity = Span(one.severity, SEVERITY_STYLE[one.severity])
    where = f" in {elide(printable(one.scope), 40)}" if one.scope else ""
    head: Line = ("  ", severity, "  ", Span(one.id, "bold"), where)
    said = words.stake(one)
    fits = len(f"  {one.severity}  {one.id}{where}  {said}") <= view.width
    lines: list[Line] = [(), (*head, f"  {said}" if said and fits else "")]
    if said and not fits:
        lines.append(("    ", said))
    lines += paragraph(printable(one.summary), view, indent=4)
    for label, text in (("cause", one.cause), ("fix", one.fix)):
        if text:
            lines += paragraph(printable(text), view, first=(Span(f"    {label:<8}", "dim"),), indent=13)
    return lines


def _untold(guess: ProgramGuess, view: View) -> list[Line]:
    if not guess.cannot_tell:
        return []
    lines = heading("Cannot tell")
    for one in guess.cannot_tell:
        lines += paragraph(words.untold(one), view, first=("  ",), indent=4)
    return lines
