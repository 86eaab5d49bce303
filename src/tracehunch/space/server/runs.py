"""Runs of ``tracehunch attention``: one at a time, each in a process, whose failure ends nothing else."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.space.server.result import Result, finished

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.space.server.settings import Settings

_PATIENCE_S: Final = 5
"""So long a run that is told to end may take."""

_MOST_LINES: Final = 200
_LONGEST_LINE: Final = 500

_log = logging.getLogger("space")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no run is started: an HTTP status, the reason, and when to ask again."""

    code: int
    why: str
    wait_s: int


@dataclass(slots=True)
class Runs:
    """The run under way, if any, and the newest good one. Nobody waits: who comes too early is refused."""

    settings: Settings
    scratch: Path
    status: str = "idle"
    """idle, running, done or failed."""
    count: int = 0
    began: float = 0.0
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=_MOST_LINES))
    """What the run has printed."""
    error: str = ""
    result: Result | None = None
    _ended: float | None = None
    _process: subprocess.Popen[str] | None = None
    _leaving: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> Refusal | None:
        """Start a run, or say why not."""
        with self._lock:
            if refusal := self._refusal():
                return refusal
            self.status, self.began, self.error = "running", time.monotonic(), ""
            self.count += 1
            self.lines.clear()
        threading.Thread(target=self._run, daemon=True).start()
        return None

    def stop(self) -> None:
        """End the run under way; none starts after it."""
        with self._lock:
            self._leaving = True
            process = self._process
        if process is not None:
            _end(process)

    def _refusal(self) -> Refusal | None:
        if self._leaving:
            return Refusal(503, "The server is about to stop.", _PATIENCE_S)
        if self.status == "running":
            return Refusal(409, "A run is under way, and one at a time is measured.", 10)
        left = 0.0 if self._ended is None else self._ended + self.settings.pause_s - time.monotonic()
        seconds = int(left) + 1
        return Refusal(429, f"The next run may start in {seconds} s.", seconds) if left > 0 else None

    def _run(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix=f"run-{self.count}-", dir=self.scratch))
        error, result = "the server could not go on; its log says why", None
        try:
            error = self._measured(folder)
            result = None if error else finished(folder)
        except (OSError, ValueError, KeyError, TypeError) as failure:
            error = f"{type(failure).__name__}: {failure}"
        finally:  # whatever happens, the next run can start
            self._finish(folder, error, result)

    def _finish(self, folder: Path, error: str, result: Result | None) -> None:
        with self._lock:
            outdated = folder if result is None else self.result and self.result.folder
            self.result, self._process = result or self.result, None
        if outdated:
            shutil.rmtree(outdated, ignore_errors=True)
        _log.info("run %d: %s", self.count, error or "done")
        with self._lock:  # last: who sees the run ended finds nothing of it under way
            self.error, self._ended = error, time.monotonic()
            self.status = "failed" if result is None else "done"

    def _measured(self, folder: Path) -> str:
        """Run the command; return what went wrong, or nothing."""
        _log.info("run %d: tracehunch %s", self.count, " ".join(self.settings.command[3:]))
        process = self._launched(folder)
        if process is None:
            return "the server is about to stop"
        overdue = threading.Timer(self.settings.timeout_s, _end, (process,))
        overdue.daemon = True
        overdue.start()
        assert process.stdout is not None
        for line in process.stdout:
            self.lines.append(line.rstrip()[:_LONGEST_LINE])
            _log.info("  %s", self.lines[-1])
        code = process.wait()
        overdue.cancel()
        if code and time.monotonic() - self.began > self.settings.timeout_s:
            return f"it took more than {self.settings.timeout_s:.0f} s, and was ended"
        return "" if code == 0 else _ended_with(code, self.lines)

    def _launched(self, folder: Path) -> subprocess.Popen[str] | None:
        with self._lock:
            if self._leaving:
                return None
            self._process = subprocess.Popen(  # noqa: S603  # the options were checked when they were written
                self.settings.command,
                cwd=folder,
                env=self.settings.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            )
            return self._process


def _end(process: subprocess.Popen[str]) -> None:
    """End a run and all that it started: asked first, then killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_PATIENCE_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
        return


def _ended_with(code: int, lines: Sequence[str]) -> str:
    """Say how a run failed."""
    if code == -signal.SIGKILL:
        return "it was killed: most likely it needed more memory than there is"
    last = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
    return f"exit code {code}: {last}"
