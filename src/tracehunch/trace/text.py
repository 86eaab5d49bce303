"""Text from a file, made safe to show: a trace's names are hostile until proven otherwise."""

from __future__ import annotations

import unicodedata

_ELLIPSIS = "..."
_SHOWN_CATEGORIES = (
    "LMNPSZ"  # letters, marks, numbers, punctuation, symbols, separators; not C: controls, surrogates
)


def printable(text: str, limit: int = 120) -> str:
    """``text`` on one line of at most ``limit`` characters, controls and surrogates written as escapes."""
    if len(text) > limit:
        text = text[: max(limit - len(_ELLIPSIS), 0)] + _ELLIPSIS
    return "".join(c if _is_shown(c) else c.encode("unicode_escape").decode("ascii") for c in text)


def _is_shown(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in _SHOWN_CATEGORIES and category not in ("Zl", "Zp")


def count_of(number: int, noun: str, plural: str = "") -> str:
    """``1 event``, ``2 events``, ``12,345 events``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
