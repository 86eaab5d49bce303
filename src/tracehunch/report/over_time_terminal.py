"""A run over time for a terminal: what changed, when, what it costs and why; then what did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.finding_texts import SEVERITY_STYLE
from tracehunch.report.layout import Column, Line, Span, View, draw, heading, paragraph, table
from tracehunch.report.over_time_quiet import (
    header_lines,
    next_command,
    quiet_lines,
    verdict,
    warnings,
)
from tracehunch.report.over_time_words import SHOWN, ShiftText, counts_text, shift_texts
from tracehunch.report.sparkline import sparkline
from tracehunch.units import plural, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.model import OverTime
    from tracehunch.report.over_time_facts import FactText

_SPARK: Final = 22
_SPARK_NARROW: Final = 12
_NARROW: Final = 76
_RANKS: Final = 20


def render(
    report: OverTime, *, view: View | None = None, sources: Sequence[str] = (), all_shifts: bool = False
) -> str:
    """Return the report. ``sources`` are what the user named; with ``all_shifts`` nothing is folded."""
    view = view or View()
    named = " ".join(printable(one, 200) for one in sources)
    lines: list[Line] = paragraph(named, view, style="bold") if named else []
    for label, text in header_lines(report):
        lines += paragraph(text, view, first=(Span(f"  {printable(label, 30):<10}", "dim"),), indent=12)
    texts = shift_texts(report)
    lines += _shifts(texts, view, all_shifts=all_shifts)
    nothing = verdict(report)
    lines += [(), *paragraph(nothing, view, style="bold")] if nothing else []
    lines += _labelled("The rest", quiet_lines(report), view)
    lines += _warnings(report, view)
    command = next_command(report)
    return draw([*lines, (), (Span("Next: ", "dim"), Span(command, "bold"))], view)


def _shifts(texts: Sequence[ShiftText], view: View, *, all_shifts: bool) -> list[Line]:
    if not texts:
        return []
    lines = heading("Changes over time", f"{counts_text(texts)}; the costliest first")
    shown = texts if all_shifts else texts[:SHOWN]
    for one in shown:
        lines += _shift(one, view)
    rest = len(texts) - len(shown)
    if rest:
        lines += [(), (Span(f"  {plural(rest, 'more change')}; --all shows all", "dim"),)]
    return lines


def _shift(one: ShiftText, view: View) -> list[Line]:
    lines: list[Line] = [()]
    first = ("  ", Span(one.severity, SEVERITY_STYLE[one.severity]), "  ")
    head = f"{one.runs}: {one.head}" if one.runs else one.head
    lines += paragraph(head, view, first=first, indent=4, style="bold")
    if one.cost:
        lines.append(("    ", Span(one.cost, "bold")))
    lines += _facts(one.facts, view)
    if one.also_facts:
        lines += paragraph(one.also_facts, view, first=(Span("    also    ", "dim"),), indent=12, style="dim")
    for number, cause in enumerate(one.causes):
        label = "    why     " if not number else "            "
        lines += paragraph(cause, view, first=(Span(label, "dim"),), indent=12)
    for found in one.findings:
        lines += paragraph(found, view, first=(Span("    findings", "dim"), " "), indent=12)
    if one.around:
        lines += paragraph(one.around, view, first=(Span("    seen in ", "dim"),), indent=12, style="dim")
    return lines


def _facts(facts: Sequence[FactText], view: View) -> list[Line]:
    ranks = any(one.runs for one in facts)  # each needs a column more
    width = _SPARK if view.width >= _NARROW and not ranks else _SPARK_NARROW
    cells: list[list[Span | str]] = [
        [
            Span(sparkline(one.series, width, unicode=view.unicode), "cyan"),
            *([one.runs] if ranks else []),
            one.name,
            one.change,
            Span(one.share, "dim"),
        ]
        for one in facts
    ]
    of_ranks = [Column("", "left", limit=_RANKS)] if ranks else []
    told = [Column("fact", "left"), Column("from -> to", "left"), Column("", "left")]
    columns = [Column("", "left"), *of_ranks, *told]
    return table(columns, cells, view, indent=4)[1:]


def _labelled(title: str, lines: Sequence[tuple[str, str]], view: View) -> list[Line]:
    drawn: list[Line] = heading(title) if lines else []
    for label, text in lines:
        drawn += paragraph(text, view, first=(Span(f"  {label:<10}", "dim"),), indent=12)
    return drawn


def _warnings(report: OverTime, view: View) -> list[Line]:
    found = warnings(report)
    lines: list[Line] = heading("Warnings", "about the files") if found else []
    mark = Span("  ! ", "yellow")
    for text in found:
        # where no person watches, one warning is one line, for grep
        lines += paragraph(text, view, first=(mark,)) if view.interactive else [(mark, text)]
    return lines
