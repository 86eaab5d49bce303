"""A trace as Perfetto reads it: JSON or gzip; what is packed otherwise is unpacked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.cli import common
from tracehunch.cli.serve_once import Served
from tracehunch.errors import ReadError, TracehunchError
from tracehunch.units import printable

if TYPE_CHECKING:
    from tracehunch.trace.model import Trace

_GZIP: Final = b"\x1f\x8b"
_NOT_PLAIN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 100  # characters of a name in a link
_HEAD: Final = 4096


def perfetto_file(source: str) -> Served:
    """Return a file, the newest trace of a folder, or standard input (``-``), to be served.

    Raises:
        TracehunchError: it cannot be read, or is nothing that Perfetto reads.

    """
    path = Path(source)
    if source != "-" and path.is_dir():
        path = _newest(path)
        common.note(f"{printable(str(path))}, the newest trace in the folder")
        source = str(path)
    try:
        data, packed = _content(source)
    except ReadError as error:
        raise ReadError(f"{printable(source)}: {error.what}", error.why, error.todo) from None
    if not packed and bytes(data[:_HEAD]).lstrip()[:1] not in (b"{", b"["):
        raise TracehunchError(
            f"{printable(source)} is no trace in JSON",
            "Perfetto gets .json and .json.gz from here",
            "give the file that the profiler exported",
        )
    name = "trace" if source == "-" else path.name
    return Served(plain_name(name, packed=packed), data)


def plain_name(name: str, *, packed: bool = False) -> str:
    """Return a name that needs no escapes in a link, with the ending that fits the content."""
    stem = re.sub(r"(\.json)?(\.(gz|xz|zst|bz2|zip))?$", "", name, flags=re.IGNORECASE)
    kept = _NOT_PLAIN.sub("-", stem)[:_LONGEST].strip("-.") or "trace"
    return f"{kept}.json{'.gz' if packed else ''}"


def _content(source: str) -> tuple[memoryview, bool]:
    """Return the bytes to serve, mapped from the file where they can be, and whether they are gzip."""
    from tracehunch.trace.encoding import as_utf8  # noqa: PLC0415  # numpy loads with it
    from tracehunch.trace.notes import Notes  # noqa: PLC0415  # as above
    from tracehunch.trace.source import load  # noqa: PLC0415  # as above
    from tracehunch.trace.unpack import unpack  # noqa: PLC0415  # as above

    data, _ = load(source)
    if bytes(data[:2]) == _GZIP:
        return data, True
    notes = Notes()
    text = as_utf8(unpack(data, notes), notes)
    for notice in notes.notices():
        common.note(notice.message)
    return text, False


def _newest(folder: Path) -> Path:
    from tracehunch.trace import read  # noqa: PLC0415  # as above
    from tracehunch.trace.folder import read_newest  # noqa: PLC0415  # as above

    taken = []

    def read_file(path: Path) -> Trace:
        taken.append(path)
        return read(path)

    try:
        read_newest(folder, read_file)
    except ReadError as error:
        raise ReadError(f"{printable(str(folder))}: {error.what}", error.why, error.todo) from None
    return taken[-1]
