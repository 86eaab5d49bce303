"""Words that tracehunch prints, and what they mean: glossary.toml as pages."""

from __future__ import annotations

import textwrap
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WIDTH: Final = 80


@cache
def glossary() -> Mapping[str, str]:
    """Word, in lower case -> its page."""
    return {
        name.lower(): _page(word, table)
        for word, table in _tables().items()
        for name in (word, *table.get("also", ()))
    }


def titles() -> list[str]:
    """Return each word as it is printed, without its other names."""
    return list(_tables())


def in_columns(words: Sequence[str]) -> str:
    """Return words below each other in as many columns as a line holds, read downwards."""
    wide = max(map(len, words), default=0) + 2
    n_rows = -(-len(words) // max((_WIDTH - 2) // wide, 1))
    rows = (words[at::n_rows] for at in range(n_rows))
    return "".join("  " + "".join(f"{word:<{wide}}" for word in row).rstrip() + "\n" for row in rows)


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8"))


def op_page(name: str) -> str:
    """Return the page of an op: what it is, and how to see what it launches."""
    text = (
        f"An op, which the host runs: not a kernel, so its name tells nothing of the GPU. "
        f"'tracehunch look TRACE --top 100' lists kernels with the op that launched each; "
        f"'tracehunch explain' decodes a kernel's name. A hunch.toml may claim of it as of a scope: "
        f'scope = "{name}".'
    )
    return f"{name}\n{wrapped(text)}"


def _page(word: str, table: Mapping[str, object]) -> str:
    lines = [word, wrapped(str(table["text"]))]
    see = table.get("see")
    if isinstance(see, list):
        lines.append(wrapped(f"see also: {', '.join(see)}"))
    return "\n".join(lines)


def wrapped(text: str) -> str:
    """Return a text as the indented lines of a page."""
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
