"""Finding where JSON values and events begin and end in a text, string-aware, without recursion."""

from __future__ import annotations

import mmap
import re
from typing import TypeAlias

Text: TypeAlias = memoryview
"""A whole file's text: a view of bytes or of a mapped file. Offsets in messages are positions in it."""

STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)
"""Strings and brackets: what matters for nesting."""

_BLANK = re.compile(rb"[\s\0]*+")
_SCALAR = re.compile(rb'[^\s,:\[\]{}"]++')
_OPEN = (b"{", b"[")

EVENT_END = re.compile(rb'\}\s*+,\s*+(?=\{\s*+")')
"""Between two events, most likely: also matches between two objects of a list in an event's arguments."""

ARRAY_END = re.compile(rb"\}\s*+(?=\])")
"""At the end of traceEvents, most likely: also matches where a list of objects in arguments ends."""


def skip_blank(text: Text, pos: int) -> int:
    """First position at or after ``pos`` that holds no white space (nor padding)."""
    match = _BLANK.match(text, pos)
    return match.end() if match else pos


def let_go(text: Text) -> None:
    """Take the pages of a mapped file off this process's memory; they come back where they are read."""
    mapped = text.obj
    if isinstance(mapped, mmap.mmap) and hasattr(mapped, "madvise"):  # not on Windows
        mapped.madvise(mmap.MADV_DONTNEED)


def at(text: Text, pos: int) -> bytes:
    """Return the one byte at ``pos``; nothing at the end."""
    return bytes(text[pos : pos + 1])


def value_end(text: Text, pos: int) -> int | None:
    """Position behind the JSON value that begins at ``pos``; None if none begins, or the text ends first."""
    first = at(text, pos)
    if first in _OPEN:
        return _container_end(text, pos)
    match = (STRING if first == b'"' else _SCALAR).match(text, pos)
    return match.end() if match else None


def _container_end(text: Text, pos: int) -> int | None:
    depth = 0
    for match in TOKEN.finditer(text, pos):
        token = match[0]
        if token in _OPEN:
            depth += 1
        elif len(token) == 1:
            depth -= 1
            if depth == 0:
                return match.end()
    return None
