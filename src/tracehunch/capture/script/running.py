"""Run a program as Python would: its exit status, its last traceback, and nothing of ours in it."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.capture.script.forwards import STATE
from tracehunch.capture.script.program import become_main

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, TracebackType

    from tracehunch.capture.script.program import Program

_PACKAGE: Final = Path(__file__).parents[2]
_OURS: Final = tuple(f"{_PACKAGE / folder}{os.sep}" for folder in ("capture/script", "cli"))
"""Where what runs a program stands; what it calls of the package is its own affair."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended: its exit status, and the signal that it dies of, 0 for none."""

    status: int
    signal: int = 0


def run(program: Program, arguments: Sequence[str]) -> Ending:
    """Run ``program`` to its end; show what it raises as Python does."""
    try:
        exec(program.code, become_main(program, arguments))  # noqa: S102  # it is what the user asked for
    except SystemExit as stop:
        return Ending(_status(stop.code))
    except KeyboardInterrupt as stop:
        show(stop)
        return Ending(128 + signal.SIGINT, signal.SIGINT)
    except BaseException as failure:  # noqa: BLE001  # the program's own, shown and passed on as exit status
        show(failure)
        return Ending(1)
    return Ending(0)


def show(failure: BaseException) -> None:
    """Print a traceback through ``sys.excepthook``, which may be the program's, without our frames."""
    _strip(failure, set())
    sys.excepthook(type(failure), failure, failure.__traceback__)


def _status(code: object) -> int:
    """Return the exit status that Python makes of ``sys.exit(code)``; text goes to stderr."""
    if code is None:
        return 0
    if isinstance(code, int):
        return int(code)
    sys.stdout.flush()
    sys.stderr.write(f"{code}\n")
    return 1


def _strip(failure: BaseException | None, seen: set[int]) -> None:
    """Take our frames out of the tracebacks of an exception and of those behind it."""
    if failure is None or id(failure) in seen:
        return
    seen.add(id(failure))
    failure.__traceback__ = _stripped(failure.__traceback__)
    _strip(failure.__cause__, seen)
    _strip(failure.__context__, seen)


def _is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(_OURS) or STATE in code.co_names


def _stripped(frames: TracebackType | None) -> TracebackType | None:
    kept = []
    while frames is not None:
        if not _is_ours(frames.tb_frame.f_code):
            kept.append(frames)
        frames = frames.tb_next
    if not kept:
        return None
    for one, after in zip(kept, [*kept[1:], None], strict=True):
        one.tb_next = after
    return kept[0]
