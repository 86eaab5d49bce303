"""The events of a large compressed trace, read while its text comes out: never is all of it in memory.

Only a sound trace can be read so. At the first doubt the text is put together after all and read as any
other, from its beginning, so that nothing depends on how a file came in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import ReadError
from tracehunch.trace.document import EVENTS, read_document
from tracehunch.trace.events import EventReader
from tracehunch.trace.notes import Notes
from tracehunch.trace.packed import Packed
from tracehunch.trace.scan import at, skip_blank
from tracehunch.trace.splitter import Ending

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.trace.second import Second

_STEP_BYTES: Final = 1 << 22
_HEAD_BYTES: Final = 1 << 22  # traceEvents begins in it
_AGAIN_BYTES: Final = 1 << 22  # read from what was kept, at a time
_REST_BYTES: Final = 1 << 26  # what stands behind the events is not more


class Ahead:
    """Takes text as it comes. Once ``finish`` says so, ``reader``, ``keys`` and ``notes`` hold the trace.

    ``second`` reads the later part meanwhile, which is then only kept here. ``keep``: whether text is.
    """

    def __init__(
        self,
        progress: Callable[[float], None] | None = None,
        *,
        second: Second | None = None,
        piece_bytes: int | None = None,
        keep: bool = True,
    ) -> None:
        self.text = Packed()
        self.notes = Notes()
        self.reader = EventReader(memoryview(b""), self.notes, second=second, piece_bytes=piece_bytes)
        self._keeps = keep
        self._waits = False  # what comes now is read by the second process
        self.keys: dict[str, Any] = {}
        self._progress = progress
        self._head = b""  # the text up to the bracket that opens the events
        self._rest = bytearray()  # what was not read yet
        self._goes_on = True  # another event followed the last piece

    def feed(self, chunk: bytes | bytearray, share: float) -> bool:
        """Take more text, ``share`` of the file; False where this is no text to be read ahead."""
        if self._waits:
            self.text.add(chunk)
            self._tell(share)
            return True
        self._rest += chunk
        if not self._head and not self._begin():
            return False
        if self._keeps:
            self.text.add(chunk)
        if len(self._rest) < _STEP_BYTES:
            return True
        if self._goes_on:
            self._advance()
        self._tell(share)
        return len(self._rest) <= _REST_BYTES

    def _tell(self, share: float) -> None:
        if self._progress:
            self._progress(min(share, 1.0))

    def _begin(self) -> bool:
        """Find where the events begin, which the first text must tell."""
        with memoryview(self._rest) as text:
            if at(text, skip_blank(text, 0)) != b"{":
                return False
        found = EVENTS.search(self._rest, 0, _HEAD_BYTES)
        if found is None:
            return False
        self._head = bytes(self._rest[: found.end() + 1])
        self._drop(len(self._head))
        return True

    def _advance(self) -> None:
        with memoryview(self._rest) as self.reader.text:
            read, self._goes_on = self.reader.whole_pieces(0)
        self.reader.text = memoryview(b"")
        self._drop(read)
        if self._goes_on and self.reader.is_elsewhere(0):
            self._waits = True
            self._rest.clear()  # it is kept, as all of the text

    def _catch_up(self) -> bool:
        """Take what the second process has read, and read what it has not from what was kept."""
        self._waits = False
        self.reader.base += self.reader.take_over(0)
        for start in range(self.reader.base, len(self.text), _AGAIN_BYTES):
            self._rest += self.text[start : start + _AGAIN_BYTES]
            if self._goes_on:
                self._advance()
            if len(self._rest) > _REST_BYTES:
                return False
        return True

    def _drop(self, n_bytes: int) -> None:
        del self._rest[:n_bytes]
        self.reader.base += n_bytes

    def finish(self) -> bool:
        """Read what remains; whether the whole text was a sound trace."""
        if not self._head or (self._waits and not self._catch_up()):
            return False
        self.reader.text = memoryview(bytes(self._rest))
        n_pieces = len(self.reader.pieces)
        end, ending = self.reader.array(0)
        if ending is not Ending.CLOSED or not all(one.whole for one in self.reader.pieces[n_pieces:]):
            return False
        return self._read_around(bytes(self._rest[end:]))

    def _read_around(self, tail: bytes) -> bool:
        """Read the keys before and behind the events as if there were none between them."""
        notes = Notes()
        outside = memoryview(self._head + b"]" + tail)
        try:
            self.keys = read_document(outside, _AlreadyRead(self.reader, len(self._head)), notes)
        except ReadError:
            return False
        return not notes.notices()


class _AlreadyRead:
    """Stands for the reader where its array, which begins at ``start``, is empty: it was read before."""

    def __init__(self, reader: EventReader, start: int) -> None:
        self.n_entries, self.n_events, self._start = reader.n_entries, reader.n_events, start

    def array(self, start: int) -> tuple[int, Ending]:
        """Close the array that was expected; refuse another one."""
        return (start + 1, Ending.CLOSED) if start == self._start else (start, Ending.HALF_EVENT)
