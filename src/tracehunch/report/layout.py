"""Lines for a terminal: styles, wrapping, columns. No markup is ever parsed; output is stable to the byte.

Text from a trace must go through ``units.printable`` before it comes here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.units import cells, elide, shorten

Style = Literal["", "bold", "dim", "red", "yellow", "green", "cyan", "blue", "bold red", "bold yellow"]

_CODES: Final[dict[str, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
    "bold red": "1;31",
    "bold yellow": "1;33",
}
_PLAIN: Final = str.maketrans({"·": "-", "─": "-", "→": "->", "▸": ">", "█": "#", "≈": "~"})
"""What tracehunch itself prints beyond ASCII, and what stands for it where the output cannot take it."""


PROSE: Final = 100
"""Columns beyond which lines of prose are hard to read, however wide the terminal."""
_COMFORTABLE: Final = 30
_NARROWEST: Final = 12
"""Columns that a table leaves to text: first so many, then so many."""


@dataclass(frozen=True, slots=True)
class View:
    """What the output can show."""

    width: int = 80
    colour: bool = False
    unicode: bool = True
    interactive: bool = False
    """Whether a person reads: a terminal or a width that was set, not a pipe or a file."""


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of a line in one style."""

    text: str
    style: Style = ""


Line = Sequence[Span | str]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, where its text stands, the most columns it may take (0: no limit).

    ``cut`` says where a longer text is cut: names that begin alike differ at their end.
    """

    heading: str
    align: Literal["left", "right"] = "right"
    limit: int = 0
    cut: Literal["end", "middle"] = "end"


def draw(lines: Iterable[Line], view: View) -> str:
    """All lines as one text that ends in a newline; without colour no escape sequence is in it."""
    return "".join(_drawn(line, view) + "\n" for line in lines)


def _drawn(line: Line, view: View) -> str:
    text = "".join(_painted(span, view) for span in line)
    if not view.colour:
        text = text.rstrip()
    return text if view.unicode else in_ascii(text)


def in_ascii(text: str) -> str:
    """Return text for an output that takes ASCII only."""
    return text.translate(_PLAIN).encode("ascii", "backslashreplace").decode()


def _painted(span: Span | str, view: View) -> str:
    if isinstance(span, str):
        return span
    return (
        f"\x1b[{_CODES[span.style]}m{span.text}\x1b[0m"
        if view.colour and span.style and span.text
        else span.text
    )


def wrap(text: str, width: int) -> list[str]:
    """Text in lines of at most ``width`` columns, broken between words; a longer word is broken within."""
    lines: list[str] = []
    current = ""
    for word in text.split():
        if current and cells(current) + 1 + cells(word) <= width:
            current = f"{current} {word}"
            continue
        if current:
            lines.append(current)
        *full, current = _chunks(word, width)
        lines += full
    return [*lines, current] if current or not lines else lines


def _chunks(word: str, width: int) -> list[str]:
    if cells(word) <= width:
        return [word]
    chunks, current, used = [], "", 0
    for character in word:
        size = cells(character)
        if used + size > width and current:
            chunks.append(current)
            current, used = "", 0
        current, used = current + character, used + size
    return [*chunks, current]


def paragraph(text: str, view: View, *, first: Line = (), indent: int = 0, style: Style = "") -> list[Line]:
    """Return wrapped text; ``first`` stands before its first line, the others are indented as far."""
    lead = sum(cells(span if isinstance(span, str) else span.text) for span in first)
    wrapped = wrap(text, max(min(view.width, PROSE) - max(indent, lead), 20))
    lines: list[Line] = [(*first, " " * (indent - lead), Span(wrapped[0], style))]
    return lines + [(" " * max(indent, lead), Span(more, style)) for more in wrapped[1:]]


def heading(text: str, aside: str = "") -> list[Line]:
    """Return a blank line and a section's title, with a remark beside it."""
    return [(), (Span(text, "bold"), Span(f"  {aside}" if aside else "", "dim"))]


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Span | str]], view: View, indent: int = 2
) -> list[Line]:
    """Aligned columns under dim headings. Left columns give way where the width does not suffice."""
    widths = _widths(columns, rows, view.width - indent)
    lines: list[Line] = [_row(columns, widths, [Span(column.heading, "dim") for column in columns], indent)]
    return lines + [_row(columns, widths, row, indent) for row in rows]


def _widths(columns: Sequence[Column], rows: Sequence[Sequence[Span | str]], room: int) -> list[int]:
    widths = []
    for at, column in enumerate(columns):
        widest = max((cells(_text(row[at])) for row in rows), default=0)
        widest = max(widest, cells(column.heading))
        widths.append(min(widest, column.limit) if column.limit else widest)
    over = sum(widths) + 2 * (len(columns) - 1) - room
    names = [at for at, column in enumerate(columns) if column.align == "left"]
    for at in reversed(names[1:]):  # remarks on the right give way before what a row is about
        given = min(max(over, 0), max(widths[at] - _COMFORTABLE, 0))
        widths[at], over = widths[at] - given, over - given
    while over > 0 and any(widths[at] > _NARROWEST for at in names):
        widths[max(names, key=lambda at: widths[at])] -= 1
        over -= 1
    return widths


def _row(columns: Sequence[Column], widths: Sequence[int], row: Sequence[Span | str], indent: int) -> Line:
    spans: list[Span | str] = [" " * indent]
    for column, width, cell in zip(columns, widths, row, strict=True):
        text = (elide if column.cut == "middle" else shorten)(_text(cell), width)
        gap = " " * (width - cells(text))
        styled = Span(text, cell.style) if isinstance(cell, Span) else text
        spans += [gap, styled, "  "] if column.align == "right" else [styled, gap, "  "]
    return spans[: -2 if columns[-1].align == "left" else -1]  # nothing follows, so nothing pads


def _text(cell: Span | str) -> str:
    return cell if isinstance(cell, str) else cell.text
