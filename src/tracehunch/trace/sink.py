"""Where decompressed text collects, within limits: a small file must not fill the memory."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, BinaryIO

from tracehunch.errors import ReadError
from tracehunch.trace.scratch import open_scratch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.trace.ahead import Ahead
    from tracehunch.trace.scan import Text

MOST_BYTES = 8 << 30
"""No trace that can be worked with is larger."""

IN_MEMORY_BYTES = 64 << 20
"""Text beyond it goes to a disk, where there is one."""

_BLANK_BYTES = 64 << 20
_DENSE_BYTES = 256 << 20
_MOST_RATIO = 200  # real traces shrink 10 to 40 times
_READ_BACK = 1 << 24


class Sink:
    """Collects chunks; raises ReadError when they are nothing but white space, or absurdly many.

    ``follow`` makes what reads a large text while it comes; ``file_bytes``: of the file, for its progress.
    """

    def __init__(self, kind: str, follow: Callable[[], Ahead] | None = None, file_bytes: int = 0) -> None:
        self._kind = kind
        self._follow = follow
        self._file_bytes = file_bytes
        self._data = bytearray()
        self._ahead: Ahead | None = None  # has the text, if it is not None
        self._file: BinaryIO | None = None  # has it, if it is not None
        self._is_large = False
        self._size = 0
        self._consumed = 0
        self._blank = True

    @property
    def size(self) -> int:
        """Bytes of text so far."""
        return self._size

    def add(self, chunk: bytes, consumed: int) -> None:
        """Append text that ``consumed`` bytes of the file gave."""
        self._consumed += consumed
        size = self._size + len(chunk)
        self._keep(chunk)
        self._size = size
        if self._blank:
            self._blank = not chunk.strip()
            if self._blank and self.size > _BLANK_BYTES:
                raise self._refusal("of nothing but white space")
        if self.size > MOST_BYTES:
            raise self._refusal(f"more than the limit of {MOST_BYTES >> 30} GiB")
        if self.size > _DENSE_BYTES and self.size > _MOST_RATIO * self._consumed:
            raise self._refusal(f"{self.size // max(self._consumed, 1)} times the size of the file")

    def cut(self, size: int) -> None:
        """Forget everything from ``size`` on."""
        self._put_together()
        self._size = size
        if self._file is None:
            del self._data[size:]

    def result(self) -> Text | Ahead:
        """Return, of a large sound trace that was followed, what has been read from it; else its text."""
        if self._ahead is not None and self._ahead.finish():
            return self._ahead
        return self.text()

    def text(self) -> Text:
        """Return what was collected, as a view."""
        self._put_together()
        if self._file is None:
            return memoryview(self._data)
        if self._size == 0:
            return memoryview(b"")
        self._file.truncate(self._size)
        return memoryview(mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ))

    def _keep(self, chunk: bytes) -> None:
        if self._ahead is not None:
            if not self._feed(self._ahead, chunk):
                self._put_together()
        elif self._file is not None:
            try:
                _write(self._file, self._size, chunk)
            except OSError:  # the disk is full
                self._take_back()
                self._data += chunk
        else:
            self._data += chunk
            if len(self._data) > IN_MEMORY_BYTES and not self._is_large:
                self._is_large = True
                self._grow()

    def _feed(self, ahead: Ahead, chunk: bytes | bytearray) -> bool:
        return ahead.feed(chunk, self._consumed / max(self._file_bytes, 1))

    def _grow(self) -> None:
        """Have the text read from now on as it comes, else move it to a disk."""
        ahead = self._follow() if self._follow is not None else None
        if ahead is not None and self._feed(ahead, self._data):
            self._ahead, self._data = ahead, bytearray()
        else:
            self._spill(2 * len(self._data))

    def _put_together(self) -> None:
        """Take the text back from what reads it ahead."""
        if self._ahead is None:
            return
        packed, self._ahead, self._size = self._ahead.text, None, 0
        self._spill(len(packed))
        for at in range(0, len(packed), _READ_BACK):
            stretch = packed[at : at + _READ_BACK]
            self._keep(stretch)
            self._size += len(stretch)

    def _spill(self, n_bytes: int) -> None:
        """Move to a disk, if there is one with room for so much."""
        file = open_scratch(n_bytes)
        if file is None:
            return
        try:
            _write(file, 0, self._data)
        except OSError:
            file.close()
            return
        self._file, self._data = file, bytearray()

    def _take_back(self) -> None:
        """Move from the disk back to memory."""
        assert self._file is not None
        self._file.seek(0)
        while len(self._data) < self._size:
            self._data += self._file.read(min(_READ_BACK, self._size - len(self._data)))
        self._file.close()
        self._file = None

    def _refusal(self, how: str) -> ReadError:
        return ReadError(
            f"refused: the {self._kind} content expands to over {self.size >> 20:,} MiB",
            f"{how}, which no trace does",
            "unpack it yourself and look at what is inside",
        )


def _write(file: BinaryIO, at: int, data: bytes | bytearray) -> None:
    file.seek(at)
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]
