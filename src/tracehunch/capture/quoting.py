"""Text that Kineto can write: it escapes nothing in names, and turns every backslash of metadata."""

from __future__ import annotations


def writable(text: str) -> str:
    """Return text that stands in JSON as it is: without quotes, backslashes and what cannot be printed."""
    plain = text.replace("\\", "/").replace('"', "'")
    return "".join(one if one.isprintable() else "?" for one in plain)


def annotation_name(text: str) -> str:
    """Return a name that a trace keeps: of one that is not all ASCII Kineto makes ``unknown``."""
    return writable(text).encode("ascii", "replace").decode()


def quoted(text: str) -> str:
    """Return a JSON string."""
    return f'"{writable(text)}"'
