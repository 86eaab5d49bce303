"""``read``: a path, a folder, standard input or bytes -> Trace."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracehunch.errors import ReadError
from tracehunch.trace.assemble import assemble
from tracehunch.trace.document import read_document
from tracehunch.trace.encoding import as_utf8
from tracehunch.trace.events import EventReader
from tracehunch.trace.folder import read_newest
from tracehunch.trace.notes import Notes
from tracehunch.trace.source import load
from tracehunch.trace.text import printable
from tracehunch.trace.unpack import unpack

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.trace.model import Trace
    from tracehunch.trace.scan import Text


def read(source: str | os.PathLike[str], *, progress: Callable[[float], None] | None = None) -> Trace:
    """Read a trace from a file, from the newest file of a folder, or from standard input (``-``).

    ``progress`` is called now and then with the share of the text that was read, 0 to 1. What is whole in a
    damaged file is used, and what was lost is said in ``Trace.notices``; raises ReadError where there is no
    trace to use.
    """
    label = printable(os.fspath(source), 200) or "''"
    try:
        if source != "-" and os.path.isdir(source):  # noqa: PTH112  # false, and no error, for what is no path
            return read_newest(Path(source), lambda path: _trace_of(*load(path), Notes(), progress))
        data, label = load(source)
        return _trace_of(data, label, Notes(), progress)
    except ReadError as error:
        raise _named(error, label) from error.__cause__


def read_bytes(data: bytes, label: str) -> Trace:
    """Read a trace from memory, compressed or not; ``label`` stands for its name. Raises ReadError."""
    try:
        return _trace_of(memoryview(data), label, Notes(), None)
    except ReadError as error:
        raise _named(error, printable(label, 200)) from error.__cause__


def _named(error: ReadError, label: str) -> ReadError:
    return ReadError(f"{label}: {error.what}", error.why, error.todo)


def _with_damage(error: ReadError, unpacking: Notes) -> ReadError:
    """Name what the text came out of, where that was damaged: then the text is not to blame."""
    damage = [notice.message for notice in unpacking.notices() if notice.code != "encoding"]
    return ReadError(error.what, "; ".join([*damage, *([error.why] if error.why else [])]), error.todo)


def _trace_of(data: Text, label: str, notes: Notes, progress: Callable[[float], None] | None) -> Trace:
    collecting = gc.isenabled()
    gc.disable()  # hundreds of thousands of short-lived objects, none of them in a cycle
    try:
        unpacking = Notes()
        text = as_utf8(unpack(data, unpacking), unpacking)
        for notice in unpacking.notices():
            notes.say(notice.code, notice.message, lossy=notice.lossy)
        reader = EventReader(text, notes, progress)
        try:
            keys = read_document(text, reader, notes)
        except ReadError as error:
            raise _with_damage(error, unpacking) from error.__cause__
        return assemble(text, label, reader, keys, notes)
    finally:
        if collecting:
            gc.enable()
