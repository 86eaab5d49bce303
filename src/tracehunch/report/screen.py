"""What the stream that a report is printed to can show: its width, colour, characters."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Final

from tracehunch.report.layout import View

if TYPE_CHECKING:
    from typing import TextIO

_NARROWEST: Final = 60  # columns; below, a terminal wraps by itself
_WIDEST: Final = 200
_UNICODE: Final = ("utf8", "utf16", "utf32", "cp65001")


def screen(stream: TextIO, width: int | None = None) -> View:
    """Return the view of a stream; 80 columns where it is no terminal and ``width`` is not given.

    ``NO_COLOR``, ``FORCE_COLOR`` and ``COLUMNS`` are heeded as the command line heeds them.
    """
    watched = stream.isatty() or bool(os.environ.get("COLUMNS"))
    there = width or (shutil.get_terminal_size((80, 24)).columns if watched else 80)
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").replace("_", "")
    return View(
        width=max(_NARROWEST, min(there, _WIDEST)),
        colour=_wants_colour(stream),
        unicode=encoding in _UNICODE,
        interactive=watched or width is not None,
    )


def _wants_colour(stream: TextIO) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"
