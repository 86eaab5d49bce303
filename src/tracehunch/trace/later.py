"""The process that ``second`` starts: it reads the later part of a file, and hands it over by its output."""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, BinaryIO, Final

import numpy as np

from tracehunch.errors import ReadError
from tracehunch.trace.ahead import Ahead
from tracehunch.trace.coding import GZIP
from tracehunch.trace.document import EVENTS
from tracehunch.trace.events import EventReader
from tracehunch.trace.notes import Notes
from tracehunch.trace.part import Part, part_of
from tracehunch.trace.scan import let_go
from tracehunch.trace.source import identity_of
from tracehunch.trace.unpack import unpack_following

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.trace.scan import Text

_SIZE_BYTES: Final = 8
_LOOK_S: Final = 1.0
_HEAD_BYTES: Final = 1 << 22  # traceEvents begins in it
_THREADS: Final = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def command(path: str, identity: tuple[int, ...], goal: int, piece_bytes: int) -> list[str]:
    """Return what starts it: it finds the same modules as this process, and none in the folder it is in."""
    job = ascii((path, identity, goal, piece_bytes, os.getpid()))
    code = f"import sys; sys.path[:] = {sys.path!a}; from tracehunch.trace.later import serve; serve(*{job})"
    return [sys.executable, "-P", "-c", code]


def environment() -> Mapping[str, str]:
    """Return its variables: it has one processor, so numpy needs one thread."""
    return {**os.environ, **dict.fromkeys(_THREADS, "1")}


def serve(path: str, identity: tuple[int, ...], goal: int, piece_bytes: int, parent: int) -> None:
    """Read the part of a file that begins with the first piece at or behind ``goal``, and hand it over.

    The file must be the one of that ``identity``; pieces are cut as ``parent``, the other process, cuts them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    if os.name == "posix":  # elsewhere a parent's number stays
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    results = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what anybody prints must not come between
    with open(path, "rb") as file:  # noqa: PTH123  # a string, as it was found
        if identity_of(os.fstat(file.fileno())) != identity:
            return
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    part = read_later(data, goal, piece_bytes)
    try:
        send(results, part)
    except BrokenPipeError:
        os._exit(0)  # nobody reads any more
    os._exit(0)  # millions of objects need not be freed one by one


def _end_with(parent: int) -> None:
    """End when the parent has been killed."""
    while os.getppid() == parent:
        time.sleep(_LOOK_S)
    os._exit(1)


def read_later(data: Text, goal: int, piece_bytes: int) -> Part | None:
    """Return the pieces from the first one at or behind ``goal`` on, as far as all is sound."""
    if bytes(data[: len(GZIP)]) == GZIP:
        later = Later(goal, piece_bytes)
        try:
            followed = unpack_following(data, Notes(), lambda: later) is later
        except ReadError:
            followed = False
        return later.part() if followed else None
    found = EVENTS.search(data, 0, _HEAD_BYTES)
    if found is None:
        return None
    reader = EventReader(data, Notes(), piece_bytes=piece_bytes)
    start, before = reader.skip(found.end() + 1, goal)
    let_go(data)
    if start < goal:
        return None
    reader.n_before = before
    end, _ = reader.whole_pieces(start)
    return part_of(reader, start, end, before)


class Later(Ahead):
    """Takes text as it comes, and reads its later part only; it keeps none."""

    def __init__(self, goal: int, piece_bytes: int) -> None:
        super().__init__(piece_bytes=piece_bytes, keep=False)
        self._goal = goal
        self._start: int | None = None

    def part(self) -> Part | None:
        """Return what was read."""
        if self._start is None:
            return None
        return part_of(self.reader, self._start, self.reader.base, self.reader.n_before)

    def feed(self, chunk: bytes | bytearray, share: float) -> bool:
        """Take more text. Raises ReadError where there is a doubt: nobody else here wants the text."""
        if not super().feed(chunk, share):
            raise ReadError("not to be read ahead")
        return True

    def finish(self) -> bool:
        """Leave the end of the events, and all behind it, to the other process."""
        self._rest.clear()
        return True

    def _advance(self) -> None:
        if self._start is None:
            with memoryview(self._rest) as self.reader.text:
                read, n_pieces = self.reader.skip(0, self._goal - self.reader.base)
            self.reader.text = memoryview(b"")
            self.reader.n_before += n_pieces
            self._drop(read)
            if self.reader.base < self._goal:
                return
            self._start = self.reader.base
        super()._advance()


def send(stream: BinaryIO, part: Part | None) -> None:
    """Write a part; its columns as they lie in memory."""
    columns: list[pickle.PickleBuffer] = []
    head = pickle.dumps(part, 5, buffer_callback=columns.append)
    views = [memoryview(head), *(column.raw() for column in columns)]
    sizes = b"".join(view.nbytes.to_bytes(_SIZE_BYTES, "little") for view in views)
    _write(stream, memoryview(len(views).to_bytes(_SIZE_BYTES, "little") + sizes))
    for view in views:
        _write(stream, view)


def _write(stream: BinaryIO, data: memoryview) -> None:
    while data:
        data = data[stream.write(data) :]


def receive(stream: BinaryIO) -> Part | None:
    """Return what was sent. EOFError where the other side has gone."""
    n_views = int.from_bytes(_exactly(stream, _SIZE_BYTES), "little")
    sizes = _exactly(stream, n_views * _SIZE_BYTES)
    head, *columns = [
        _exactly(stream, int.from_bytes(sizes[at : at + _SIZE_BYTES], "little"))
        for at in range(0, len(sizes), _SIZE_BYTES)
    ]
    part: Part | None = pickle.loads(head, buffers=columns)  # noqa: S301  # from our own other half
    return part


def _exactly(stream: BinaryIO, n_bytes: int) -> memoryview:
    """Return so many bytes, in memory of their own that may be written to."""
    data = np.empty(n_bytes, dtype=np.uint8).data
    done = 0
    while done < n_bytes:
        got = stream.readinto(data[done:])  # type: ignore[attr-defined]  # of a pipe
        if not got:
            raise EOFError
        done += got
    return data
