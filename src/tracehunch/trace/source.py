"""A path, a folder or standard input -> the bytes of one file."""

from __future__ import annotations

import mmap
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tracehunch.errors import ReadError
from tracehunch.trace.foreign import refuse_suffix
from tracehunch.trace.sink import MOST_BYTES
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracehunch.trace.notes import Notes
    from tracehunch.trace.scan import Text

_CHUNK = 1 << 20
_SUFFIXES = (".json", ".json.gz", ".json.xz", ".json.bz2", ".json.zst", ".json.zip")
_OTHERS_SHOWN = 8


def load(source: str | os.PathLike[str], notes: Notes) -> tuple[Text, str]:
    """Return the file's bytes, mapped where possible, and its label. Raises ReadError."""
    if source == "-":
        return _drain(sys.stdin.buffer), "standard input"
    text = os.fspath(source)
    if text.startswith(("http://", "https://", "s3://", "gs://")):
        raise ReadError("addresses are not read", "", "download the file and give its path")
    path = Path(text)
    try:
        if path.is_dir():
            path = _newest(path, notes)
        return _open(path), printable(path.name, 200)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ReadError("cannot be opened", reason, "check the path and its permissions") from None


def _open(path: Path) -> Text:
    refusal = refuse_suffix(path.name)
    if refusal:
        raise refusal
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            return _drain(file)  # a pipe, such as <(zcat ...)
        if status.st_size == 0:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _drain(stream: BinaryIO) -> Text:
    data = bytearray()
    while chunk := stream.read(_CHUNK):
        data += chunk
        if len(data) > MOST_BYTES:
            raise ReadError(
                f"more than the limit of {MOST_BYTES >> 30} GiB came in", "", "give a smaller trace"
            )
    return memoryview(data)


def _newest(folder: Path, notes: Notes) -> Path:
    """Pick the newest trace in a folder, or below it if it holds none itself; a notice lists the others."""
    traces = _traces(folder.iterdir()) or _traces(folder.rglob("*"))
    if not traces:
        raise ReadError(
            "a folder without a trace", "no file in it is named *.json or *.json.gz", "give a trace file"
        )
    traces.sort(key=lambda path: (path.stat().st_mtime_ns, path.name))
    *others, chosen = traces
    if others:
        names = [printable(str(path.relative_to(folder)), 80) for path in reversed(others)]
        shown = ", ".join(names[:_OTHERS_SHOWN]) + (" ..." if len(names) > _OTHERS_SHOWN else "")
        what = f"{printable(chosen.name, 80)}, the newest of {len(traces):,} traces in the folder, was taken"
        notes.say("other-traces", f"{what}; the others: {shown}", lossy=False)
    return chosen


def _traces(paths: Iterable[Path]) -> list[Path]:
    """Pick the traces among files: those that the profiler named, or else all that are named as JSON."""
    found = [p for p in paths if p.name.lower().endswith(_SUFFIXES) and p.is_file()]
    return [p for p in found if ".trace.json" in p.name.lower()] or found
