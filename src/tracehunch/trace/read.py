"""``read``: a path, a folder, standard input or bytes -> Trace."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tracehunch.errors import ReadError
from tracehunch.trace import events, second
from tracehunch.trace.ahead import Ahead
from tracehunch.trace.assemble import assemble
from tracehunch.trace.collecting import uncollected
from tracehunch.trace.document import read_document
from tracehunch.trace.encoding import as_utf8
from tracehunch.trace.events import EventReader
from tracehunch.trace.folder import read_newest
from tracehunch.trace.foresee import refuse_too_large
from tracehunch.trace.notes import Notes
from tracehunch.trace.remote import without_secrets
from tracehunch.trace.source import load
from tracehunch.trace.text import printable
from tracehunch.trace.unpack import unpack_following

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.trace.model import Trace
    from tracehunch.trace.scan import Text
    from tracehunch.trace.second import Second


def read(
    source: str | os.PathLike[str],
    *,
    progress: Callable[[float], None] | None = None,
    max_memory: int | None = None,
) -> Trace:
    """Read a trace from a file, a URL, the newest file of a folder, or standard input (``-``).

    ``progress`` is called now and then with the share of the text that was read, 0 to 1. What is whole in a
    damaged file is used, and what was lost is said in ``Trace.notices``; raises ReadError where there is no
    trace to use, or where reading and judging it would take more than ``max_memory`` bytes of this process.
    """
    label = printable(without_secrets(os.fspath(source)), 200) or "''"
    try:
        if source != "-" and os.path.isdir(source):  # noqa: PTH112  # false, and no error, for what is no path
            return read_newest(Path(source), lambda path: _trace_of(*load(path), progress, max_memory))
        data, label = load(source)
        return _trace_of(data, label, progress, max_memory)
    except ReadError as error:
        raise _named(error, label) from error.__cause__


def read_bytes(data: bytes, label: str) -> Trace:
    """Read a trace from memory, compressed or not; ``label`` stands for its name. Raises ReadError."""
    try:
        return _trace_of(memoryview(data), label)
    except ReadError as error:
        raise _named(error, printable(label, 200)) from error.__cause__


def _named(error: ReadError, label: str) -> ReadError:
    return ReadError(f"{label}: {error.what}", error.why, error.todo)


def _with_damage(error: ReadError, unpacking: Notes) -> ReadError:
    """Name what the text came out of, where that was damaged: then the text is not to blame."""
    damage = [notice.message for notice in unpacking.notices() if notice.code != "encoding"]
    return ReadError(error.what, "; ".join([*damage, *([error.why] if error.why else [])]), error.todo)


def _trace_of(
    data: Text,
    label: str,
    progress: Callable[[float], None] | None = None,
    max_memory: int | None = None,
) -> Trace:
    if max_memory is not None:
        refuse_too_large(data, max_memory)
    with uncollected():
        return _read(data, label, progress)


def _read(data: Text, label: str, progress: Callable[[float], None] | None) -> Trace:
    with second.beside(data, events.PIECE_BYTES) as other:
        return _read_with(other, data, label, progress)


def _read_with(
    other: Second | None, data: Text, label: str, progress: Callable[[float], None] | None
) -> Trace:
    unpacking, notes = Notes(), Notes()
    unpacked = unpack_following(data, unpacking, lambda: Ahead(progress, second=other))
    if isinstance(unpacked, Ahead):
        unpacked.notes.add(unpacking)
        return assemble(unpacked.text, label, unpacked.reader, unpacked.keys, unpacked.notes)
    text = as_utf8(unpacked, unpacking)
    notes.add(unpacking)
    reader = EventReader(text, notes, progress, second=other if text is data else None)
    try:
        keys = read_document(text, reader, notes)
    except ReadError as error:
        raise _with_damage(error, unpacking) from error.__cause__
    return assemble(text, label, reader, keys, notes)
