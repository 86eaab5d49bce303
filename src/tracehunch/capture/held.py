"""Signals that wait while a profiler starts, changes what it does, or stops.

A KeyboardInterrupt amid these leaves PyTorch's profiler half started: nobody can stop it any more, and the
process crashes when it ends (seen with torch 2.13).
"""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

ENDINGS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a process where nobody handles them."""


@contextmanager
def held() -> Iterator[None]:
    """Let signals that would break off a piece of work wait until it is done; the first is then handled."""
    if threading.current_thread() is not threading.main_thread():  # where no signal arrives
        yield
        return
    waiting = _Waiting()
    try:
        waiting.begin()
        yield
    finally:
        waiting.end()


class _Waiting:
    """Notes signals in place of their handlers, until it has ended; then it passes on what still comes."""

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, FrameType | None], Any]] = {}
        self._came: list[int] = []
        self._over = False

    def begin(self) -> None:
        for number in (signal.SIGINT, *ENDINGS):
            if callable(handler := signal.getsignal(number)):
                self._before[number] = handler
                signal.signal(number, self._note)

    def end(self) -> None:
        self._over = True
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._note:  # the work may have set another
                signal.signal(number, handler)
        for number in self._came[:1]:
            now = signal.getsignal(number)
            if callable(now):  # called, not sent again: who watches a wake-up descriptor has heard it already
                now(number, sys._getframe())  # noqa: SLF001  # as Python calls it
            else:
                signal.raise_signal(number)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self._over:
            self._before[number](number, frame)
        else:
            self._came.append(number)
