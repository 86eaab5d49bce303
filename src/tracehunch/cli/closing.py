"""What happens after a script has run: its trace is written and looked at, and its exit status passed on."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
import threading
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from tracehunch.cli import common, failures
from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.capture.script import Ending, Outcome, Session


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to do with the trace."""

    look: bool
    hunch: Path | None
    output_format: str
    output: Path | None
    all_findings: bool
    fail_on: str
    strict: bool


class Closing:
    """Made before the script runs, so that its own exit handlers come before ours."""

    def __init__(self, session: Session, wanted: Wanted, *, is_first: bool) -> None:
        self._session = session
        self._wanted = wanted
        self._is_first = is_first
        self._stderr = sys.stderr  # which the script may close, or replace for its own ends
        self._status: int | None = None  # where Python would not end with it by itself
        self._signal = 0
        atexit.register(self._leave)

    def after(self, ending: Ending) -> int:
        """Finish, unless threads that the script left have their time first; return the exit status."""
        self._signal = ending.signal
        if self._session.elsewhere:
            self._status = ending.status  # after a fork, the profiler's library waits for ever in exit()
            return ending.status
        if _threads_go_on():
            atexit.register(self._finish_late, ending.status)
            return ending.status
        return self._finish(ending.status)

    def _finish(self, status: int) -> int:
        with _errors_to(self._stderr):
            try:
                code = self._close(self._session.finish(), status)
            except (TracehunchError, KeyboardInterrupt) as failure:
                code = failures.tell(failure, debug=False)
        return status or code

    def _finish_late(self, status: int) -> None:
        if not self._session.elsewhere:
            self._status = self._finish(status)

    def _leave(self) -> None:
        """End as the script would have: of the signal that it was sent, or with another exit status."""
        if not self._signal and self._status is None:
            return
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
        if self._signal:
            signal.signal(self._signal, signal.SIG_DFL)
            os.kill(os.getpid(), self._signal)
        os._exit(self._status or 0)

    def _close(self, outcome: Outcome, status: int) -> int:
        if outcome.trace is None:
            return self._without(outcome, status)
        if not self._is_first:
            return common.FINE
        if not self._session.told:
            common.note(outcome.sentence)
        if outcome.note:
            common.note(outcome.note)
        return self._looked(outcome.trace) if self._wanted.look else common.FINE

    def _without(self, outcome: Outcome, status: int) -> int:
        """Say that there is no trace; what was to be checked has then failed."""
        gated = self._wanted.hunch is not None or self._wanted.fail_on != "never" or self._wanted.strict
        if self._is_first or not status:
            common.note(outcome.sentence)
        return failures.USAGE if gated and self._is_first else common.FINE

    def _looked(self, trace: Path) -> int:
        """Look, or check, as those verbs do; what they print goes where the script does not write."""
        from tracehunch.capture.script import as_typed  # noqa: PLC0415  # loaded only where a script was run

        wanted = self._wanted
        options: dict[str, Any] = {
            "output_format": wanted.output_format,
            "output": wanted.output,
            "all_findings": wanted.all_findings,
            "fail_on": wanted.fail_on,
            "strict": wanted.strict,
        }
        command = self._command()
        if wanted.hunch is None:
            options["traces"] = (as_typed(trace),)  # look takes several
        else:
            options |= {"trace": as_typed(trace), "hunch": wanted.hunch}
        with redirect_stdout(sys.stderr):
            code = click.Context(command).invoke(command, **options)
        return code if isinstance(code, int) else common.FINE

    def _command(self) -> click.Command:
        from tracehunch.cli.check import check  # noqa: PLC0415  # loaded only where something was recorded
        from tracehunch.cli.look import look  # noqa: PLC0415  # as above

        return look if self._wanted.hunch is None else check


@contextmanager
def _errors_to(stream: TextIO | None) -> Iterator[None]:
    """Let standard error be what it was before the script, or nothing where the script has closed it."""
    if stream is not None and _is_open(stream):
        with redirect_stderr(stream):
            yield
        return
    with Path(os.devnull).open("w", encoding="utf-8") as nothing, redirect_stderr(nothing):
        yield


def _is_open(stream: TextIO) -> bool:
    try:
        os.fstat(stream.fileno())
    except io.UnsupportedOperation:  # no file at all
        return not stream.closed
    except (OSError, ValueError):
        return False
    return True


def _threads_go_on() -> bool:
    """Whether the script left threads running that Python will wait for."""
    here = threading.current_thread()
    return any(one.is_alive() and not one.daemon and one is not here for one in threading.enumerate())
