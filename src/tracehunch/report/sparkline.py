"""A row of numbers as a row of characters: how a fact moved, at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_PLAIN: Final = "_.-=+*%#"


def sparkline(values: Sequence[float | None], width: int, *, unicode: bool = True) -> str:
    """Return at most ``width`` characters, lowest to highest; a blank where a value is not known.

    Of several values that share a character the one farthest from the middle shows, so that peaks stay.
    """
    known = [one for one in values if one is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    marks = _BLOCKS if unicode else _PLAIN
    middle = sorted(known)[len(known) // 2]
    shown = []
    n = min(width, len(values))
    for at in range(n):
        part = [one for one in values[at * len(values) // n : (at + 1) * len(values) // n] if one is not None]
        shown.append(max(part, key=lambda one: abs(one - middle)) if part else None)
    scale = (len(marks) - 1) / (high - low) if high > low else 0.0
    return "".join(" " if one is None else marks[round((one - low) * scale)] for one in shown)
