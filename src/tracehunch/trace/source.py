"""A path or standard input -> the bytes of one file."""

from __future__ import annotations

import mmap
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from tracehunch.errors import ReadError
from tracehunch.trace import remote
from tracehunch.trace.foreign import refuse_suffix
from tracehunch.trace.sink import MOST_BYTES
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from tracehunch.trace.scan import Text

_CHUNK = 1 << 20


class MappedFile(mmap.mmap):
    """A whole file's content, and which file it is: another process can map the same one."""

    path: str
    identity: tuple[int, ...]


def identity_of(status: os.stat_result) -> tuple[int, ...]:
    """Return what changes when a file is written or replaced."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def load(source: str | os.PathLike[str]) -> tuple[Text, str]:
    """Return the file's bytes, mapped where possible, and its label. Raises ReadError."""
    if source == "-":
        if sys.stdin is None:
            raise ReadError("standard input is closed", "", "give a file, or pipe one in")
        return _drain(sys.stdin.buffer), "standard input"
    text = os.fspath(source)
    if not text:
        raise ReadError(
            "the path is empty", "", "give a trace file, a folder of them, or - for standard input"
        )
    if remote.is_url(text) and not os.path.lexists(text):
        local = remote.local_path(text)
        if local is None:
            return remote.fetch(text), printable(remote.name_of(text), 200)
        text = local
    path = Path(text)
    try:
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
        mapped = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
        mapped.path, mapped.identity = os.path.abspath(path), identity_of(status)  # noqa: PTH100  # links stay
        return memoryview(mapped)


def _drain(stream: BinaryIO) -> Text:
    data = bytearray()
    while chunk := stream.read(_CHUNK):
        data += chunk
        if len(data) > MOST_BYTES:
            raise ReadError(
                f"more than the limit of {MOST_BYTES >> 30} GiB came in", "", "give a smaller trace"
            )
    return memoryview(data)
