"""A critical path for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import critical_rows as rows
from tracehunch.report import summary
from tracehunch.report.layout import Column, Line, Span, View, draw, heading, paragraph, table
from tracehunch.units import printable

if TYPE_CHECKING:
    from tracehunch.compare.critical import CriticalPath
    from tracehunch.verdict import Look

_KINDS: Final = (Column("share"), Column("time"), Column("kind", "left"), Column("what it is", "left"))
_LONGEST: Final = (
    Column("share"),
    Column("time"),
    Column("times"),
    Column("kind", "left", 15),
    Column("what", "left", cut="middle"),
    Column("event", "left", 10),
)
_WHAT_IFS: Final = (Column("gain"), Column("to"), Column("if", "left"), Column("then mostly", "left"))


def render(
    look: Look,
    path: CriticalPath,
    *,
    view: View | None = None,
    source: str = "",
    top: int = rows.LONGEST,
) -> str:
    """Return the report: what was recorded, the path with so many of the longest, what would shorten it."""
    view = view or View()
    source = source or look.facts.tree.trace.label
    lines: list[Line] = [(Span(printable(source), "bold"),)]
    for label, text in summary.recorded_on(look):
        lines += paragraph(text, view, first=(Span(f"  {label:<10}", "dim"),), indent=12)
    for notice in summary.notices(look):
        mark = Span("  ! ", "bold yellow" if notice.lossy else "yellow")
        lines += paragraph(f"{notice.code}: {notice.message}", view, first=(mark,))
    lines += path_lines(path, view, top)
    ending = rows.next_command(look, path, source)
    return draw([*lines, (), (Span("Next: ", "dim"), Span(ending, "bold"))], view)


def path_lines(path: CriticalPath, view: View, top: int = rows.LONGEST) -> list[Line]:
    """Return the section."""
    lines = heading("Critical path", f"of {rows.title(path)}")
    lines += paragraph(rows.verdict(path), view, indent=2)
    lines += table(
        _KINDS, [[r.share, r.time, r.kind, Span(r.meaning, "dim")] for r in rows.kind_rows(path)], view
    )
    lines += heading("Longest on it", "by what took the time; events are positions in traceEvents")
    cells = [
        [row.share, row.time, row.stretches, row.kind, row.brief, row.events.split(",")[0]]
        for row in rows.long_rows(path, top)
    ]
    lines += table(_LONGEST, cells, view)
    lines += _below(rows.rest(path, top), view)
    lines += _what_ifs(path, view)
    for note in path.notes:
        lines += paragraph(note, view, first=("  ", Span("note", "bold"), "  "), indent=4, style="dim")
    return lines


def _what_ifs(path: CriticalPath, view: View) -> list[Line]:
    lines = heading("What if", "at best, by the same dependencies")
    answers = rows.what_if_rows(path)
    if answers:
        lines += table(_WHAT_IFS, [[r.gain, r.time, r.title, r.then] for r in answers], view)
    lines += _below(rows.without_gain(path), view)
    if text := rows.untold(path):
        lines += paragraph(text, view, first=("  ", Span("cannot tell", "bold"), "  "), indent=4, style="dim")
    return lines


def _below(text: str, view: View) -> list[Line]:
    return paragraph(text, view, indent=2, style="dim") if text else []
