"""The parent's end of a worker process: started when there is a task, and again after it died."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from tracehunch.engines import worker
from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from tracehunch.compare.ranks.model import Examined
    from tracehunch.engines.task import Work
    from tracehunch.trace.discover import Source


@dataclass(frozen=True, slots=True)
class Died:
    """The process ended in the middle of a task."""


@dataclass(frozen=True, slots=True)
class Short:
    """The task needed more memory than it was allowed."""


class Child:
    """One worker process. ``ask`` is called by one thread; ``end`` by any."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._lock = threading.Lock()

    def ask(
        self, work: Work, source: Source, allowed_bytes: int | None
    ) -> Examined | Died | Short | TracehunchError:
        """Return what the task gave, or what became of it; an error where no worker can be started."""
        process = self._process or self._start()
        if isinstance(process, TracehunchError):
            return process
        try:
            worker.send(_pipe(process.stdin), (work, source, allowed_bytes))
            outcome: Any = worker.receive(_pipe(process.stdout))
        except (EOFError, OSError, ValueError):  # ValueError: the pipe was closed by end()
            self._reap()
            return Died()
        return Short() if outcome is None else outcome

    def end(self) -> None:
        """End the process at once, whatever it does; none is started any more."""
        with self._lock:
            self._ended = True
        self._reap()

    def _start(self) -> subprocess.Popen[bytes] | TracehunchError:
        with tempfile.TemporaryFile() as said:
            with self._lock:
                if self._ended:
                    return TracehunchError("the workers were ended")
                try:
                    process = self._process = _popen(said)
                except OSError as error:
                    return _no_worker(error.strerror or str(error))
            try:
                worker.receive(_pipe(process.stdout))  # it greets when it is ready
            except (EOFError, OSError, ValueError):  # ValueError: as above
                self._reap()
                return _no_worker(last_line(said) or f"it ended with status {process.returncode}")
            return process

    def _reap(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            _close(_pipe(pipe))


def _popen(said: BinaryIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  # this Python, and a command of our own
        worker.command(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        env=worker.environment(),
    )


def last_line(said: BinaryIO) -> str:
    """Return the last line of what a process said."""
    said.seek(0)
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""


def _no_worker(why: str) -> TracehunchError:
    return TracehunchError(
        "no worker process can be started", why, "--workers 1 reads all files in this process"
    )


def _pipe(pipe: object) -> BinaryIO:
    assert pipe is not None
    return pipe  # type: ignore[return-value]  # both were asked for


def _close(pipe: BinaryIO) -> None:
    try:
        pipe.close()
    except OSError:  # what was still to be written has nobody to read it
        return
