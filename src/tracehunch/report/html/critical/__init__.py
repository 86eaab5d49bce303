"""What bounds a step, where it was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import critical_rows as rows
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table

if TYPE_CHECKING:
    from tracehunch.compare.critical import CriticalPath


def critical_section(path: CriticalPath) -> Section:
    """Return the section: who bounds the step, what the path consists of, what would shorten it."""
    number = [Head("share", number=True), Head("time", number=True)]
    kinds = [[*map(_cell, (r.share, r.time, r.kind, r.meaning))] for r in rows.kind_rows(path)]
    longest = [
        [*map(_cell, (r.share, r.time, r.stretches, r.kind)), Cell(code(r.what)), _cell(r.events)]
        for r in rows.long_rows(path)
    ]
    answers = [[*map(_cell, (r.gain, r.time, r.title, r.then))] for r in rows.what_if_rows(path)]
    gains = [Head("gain", number=True), Head("to", number=True), Head("if", wide=True), Head("then mostly")]
    notes = [rows.rest(path), rows.without_gain(path), rows.untold(path), *path.notes]
    html = [
        f"<p>{text(rows.verdict(path))}</p>",
        table([*number, Head("kind"), Head("what it is", wide=True)], kinds, caption="Kinds on the path"),
        table(
            [*number, Head("times", number=True), Head("kind"), Head("what", wide=True), Head("events")],
            longest,
            caption="Longest on the path",
        ),
        table(gains, answers, caption="What if") if answers else "",
        *(f'<p class="dim">{text(note)}</p>' for note in notes if note),
    ]
    return Section("critical-path", "Critical path", "".join(html), aside=f"of {rows.title(path)}")


def _cell(raw: str) -> Cell:
    return Cell(text(raw))
