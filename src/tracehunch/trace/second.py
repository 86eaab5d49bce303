"""A second process that reads the later part of a large trace, while this one reads the earlier.

It is a plain child (``later``) and none of ``multiprocessing``'s, which would import the caller's script
again. Whatever keeps it from its work, this process then does all of it, and the result is the same.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from tracehunch.trace import later
from tracehunch.trace.coding import GZIP
from tracehunch.trace.foresee import need_of
from tracehunch.trace.processors import processors
from tracehunch.trace.source import MappedFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.trace.part import Part
    from tracehunch.trace.scan import Text

SWITCH: Final = "TRACEHUNCH_ONE_PROCESS"
"""Environment variable: if it is set, and not empty, no second process is started."""

LEAST_BYTES: Final = 200 << 20
"""Of text; a smaller one is read before a second process has helped much."""

LATE_BYTES: Final = 70 << 20
"""What one process reads until the other has started."""

_SHRUNK: Final = 60  # no gzip file of a trace has more text than so many times its size
_PIPE_BYTES: Final = 1 << 20
_PATIENCE_S: Final = 1.0
_PATIENCE: Final = 2.0
"""Waited for the other: so many seconds, and so many times as long as it has had until then."""
_LOOK_S: Final = 0.2  # a wait without end cannot be interrupted everywhere


class Second:
    """The other process; what it was asked for is everything from the first piece at or behind ``goal``."""

    def __init__(self, process: subprocess.Popen[bytes], goal: int) -> None:
        self.goal = goal
        self._process = process
        self._part: Part | None = None
        self._started = time.monotonic()
        self._reading = threading.Thread(target=self._receive, daemon=True)
        self._reading.start()

    def part(self) -> Part | None:
        """Wait for what it has read; None where nothing came, or not in time."""
        now = time.monotonic()
        patience = now + _PATIENCE_S + _PATIENCE * (now - self._started)
        while self._reading.is_alive() and time.monotonic() < patience:
            self._reading.join(_LOOK_S)
        return None if self._reading.is_alive() else self._part

    def end(self) -> None:
        """End it at once, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._reading.join()
        _pipe(self._process).close()

    def _receive(self) -> None:
        try:
            self._part = later.receive(_pipe(self._process))
        except (EOFError, OSError, ValueError, MemoryError, pickle.UnpicklingError):
            self._part = None


def _pipe(process: subprocess.Popen[bytes]) -> BinaryIO:
    assert process.stdout is not None  # it was asked for
    return process.stdout  # type: ignore[return-value]  # typed as IO[bytes]


@contextmanager
def beside(data: Text, piece_bytes: int) -> Iterator[Second | None]:
    """Start a second process on a large file if it can help; it has ended when this is left."""
    started = _start(data, piece_bytes) if may_start() else None
    try:
        yield started
    finally:
        if started is not None:
            started.end()


def may_start() -> bool:
    """Whether there is a processor for a second process, and nobody else who fills them all."""
    if os.environ.get(SWITCH) or processors() < 2 or not is_any_idle():
        return False
    if threading.current_thread() is not threading.main_thread() or _is_of_pool():
        return False
    name = Path(sys.executable or "").name.lower()
    return not getattr(sys, "frozen", False) and name.startswith(("python", "pypy"))


def _is_of_pool() -> bool:
    """Whether this is a worker process of ``multiprocessing``: such ones come many at once."""
    loaded = sys.modules.get("multiprocessing.process")
    return loaded is not None and loaded.parent_process() is not None


def is_any_idle() -> bool:
    """Whether the machine has a processor that nothing runs on just now, as far as it tells (Linux).

    Where there is none, two processes take turns, and are slower than one.
    """
    try:
        running = int(Path("/proc/loadavg").read_text("ascii").split()[3].split("/")[0])
    except (OSError, ValueError, IndexError):
        return True
    return running < (os.cpu_count() or 1)  # this process is one of the running


def _start(data: Text, piece_bytes: int) -> Second | None:
    mapped = data.obj
    if not isinstance(mapped, MappedFile) or len(mapped) != len(data):
        return None
    n_bytes = _text_bytes(data)
    if n_bytes < LEAST_BYTES:
        return None
    goal = min((n_bytes + LATE_BYTES) // 2, n_bytes)
    try:
        process = subprocess.Popen(  # noqa: S603  # this Python, and a command of our own
            later.command(mapped.path, mapped.identity, goal, piece_bytes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=later.environment(),
            pipesize=_PIPE_BYTES,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except (OSError, ValueError, RuntimeError):  # no room for it, or forbidden, also by an audit hook
        return None
    return _attended(process, goal)


def _attended(process: subprocess.Popen[bytes], goal: int) -> Second | None:
    try:
        return Second(process, goal)
    except RuntimeError:  # no more threads are allowed
        process.kill()
        process.wait()
        _pipe(process).close()
        return None


def _text_bytes(data: Text) -> int:
    """Return about how much text there is; 0 where that cannot be read from two places at once."""
    if bytes(data[: len(GZIP)]) == GZIP:
        return need_of(data).text_bytes if len(data) * _SHRUNK >= LEAST_BYTES else 0
    return len(data) if bytes(data[:64]).lstrip()[:1] == b"{" else 0
