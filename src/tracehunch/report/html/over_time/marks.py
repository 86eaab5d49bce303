"""Marks on the lines of ranks: a shape each, since colour alone says nothing to some."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

SHAPES: Final = (
    "m-2.5 0a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0z",  # disc
    "m-2.5-2.5h5v5h-5z",  # square
    "m0-3.2l3 5.4h-6z",  # triangle
    "m0-3.3l3.3 3.3l-3.3 3.3l-3.3-3.3z",  # diamond
    "m0 3.2l3-5.4h-6z",  # triangle on its tip
    "m-3.2-.9h2.3v-2.3h1.8v2.3h2.3v1.8h-2.3v2.3h-1.8v-2.3h-2.3z",  # cross
    "m-3-1.2h6v2.4h-6z",  # bar
    "m-1.2-3h2.4v6h-2.4z",  # post
)


def marks(number: int, places: Iterable[tuple[float, float]]) -> str:
    """Return the path of a line's marks; lines of the same number look alike."""
    shape = SHAPES[number % len(SHAPES)]
    return "".join(f"M{x:.1f} {y:.1f}{shape}" for x, y in places)
