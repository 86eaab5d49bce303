"""Tables that read without scripts; with them, those marked so are sorted by their headings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehunch.report.html.escape import text

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Head:
    """A column: its heading, whether it holds numbers (they stand right) or longer text, what it means."""

    heading: str
    number: bool = False
    meaning: str = ""
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: HTML already. `value` is what it is sorted by, where that is not its text."""

    html: str
    value: float | None = None


def table(
    heads: Sequence[Head],
    rows: Sequence[Sequence[Cell]],
    *,
    caption: str,
    sortable: bool = False,
    pinned: bool = False,
) -> str:
    """Return a table in a frame that scrolls sideways, with `pinned` under its first column.

    `caption` is read aloud, and not shown. A column with nothing in it is left out.
    """
    css = [word for word, on in (("sortable", sortable), ("pinned", pinned)) if on]
    marks = f' class="{" ".join(css)}"' if css else ""
    kept = [at for at in range(len(heads)) if not rows or any(row[at].html for row in rows)]
    heads, rows = [heads[at] for at in kept], [[row[at] for at in kept] for row in rows]
    head = "".join(_head(one) for one in heads)
    body = "".join(
        f"<tr>{''.join(_cell(h, c) for h, c in zip(heads, row, strict=True))}</tr>" for row in rows
    )
    return (
        f'<div class="frame" role="region" tabindex="0" aria-label="{text(caption)}"><table{marks}>'
        f'<caption class="quiet">{text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _head(head: Head) -> str:
    marks = _class(head) + (f' title="{text(head.meaning)}"' if head.meaning else "")
    return f'<th scope="col"{marks}>{text(head.heading)}</th>'


def _cell(head: Head, cell: Cell) -> str:
    marks = _class(head)
    if cell.value is not None:
        marks += f' data-v="{cell.value!r}"'
    return f"<td{marks}>{cell.html}</td>"


def _class(head: Head) -> str:
    return ' class="n"' if head.number else ' class="w"' if head.wide else ""
