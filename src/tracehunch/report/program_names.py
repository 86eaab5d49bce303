"""Names of ops, kernels and modules in the room that a table leaves them, distinct as long as that can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.units import cells, elide, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.report.layout import Column, Span, View

ATEN: Final = "aten::"
_INDENT: Final = 2
_LEAST: Final = 12
_KIND: Final = len("triton_poi")
"""What the begin of a generated kernel's name tells: who made it, and of which kind it is."""
_CUT: Final = "..."


def room_for_names(columns: Sequence[Column], rows: Sequence[Sequence[Span | str]], view: View) -> int:
    """Return the width that all columns but the first leave to it."""
    widths = [max(len(one.heading), *(len(_text(row[at])) for row in rows)) for at, one in enumerate(columns)]
    return max(view.width - _INDENT - sum(width + _INDENT for width in widths[1:]), _LEAST)


def short_names(names: Sequence[str], width: int) -> list[str]:
    """Return names of at most a width: without "aten::" where one does not fit, then cut in the middle.

    Names that differ stay so: the cut moves to where they do. Where no place will do, they end alike.
    """
    given = [printable(name) for name in names]
    if any(cells(name) > width for name in given):
        given = [name.removeprefix(ATEN) for name in given]
    cut = [elide(name, width) for name in given]
    for at, name in enumerate(given):
        rivals = {other for other, short in zip(given, cut, strict=True) if short == cut[at]} - {name}
        if rivals:
            cut[at] = _apart(name, [*rivals, *given], width)
    return cut


def _apart(name: str, others: Sequence[str], width: int) -> str:
    """Return a name cut where no other is cut to the same; the begin gives way first."""
    room = width - len(_CUT)
    heads = sorted(range(1, room), key=lambda head: (head < _KIND, abs(head - room // 2)))
    for head in heads:
        found = _cut_at(name, head, width)
        if all(_cut_at(other, head, width) != found for other in others if other != name):
            return found
    return elide(name, width)


def _cut_at(name: str, head: int, width: int) -> str:
    if cells(name) <= width or not name.isascii():
        return elide(name, width)
    return f"{name[:head]}{_CUT}{name[len(name) - (width - len(_CUT) - head) :]}"


def _text(cell: Span | str) -> str:
    return cell if isinstance(cell, str) else cell.text
