"""Ctrl-C that is not forgotten: code under way may turn the KeyboardInterrupt into an error of its own."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Interrupts:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.came = False

    def _note(self, _number: int, _frame: Any) -> None:
        self.came = True
        raise KeyboardInterrupt

    def obey(self) -> None:
        """Raise the KeyboardInterrupt that somebody swallowed, if any."""
        if self.came:
            raise KeyboardInterrupt


@contextmanager
def noted() -> Iterator[Interrupts]:
    """Note interrupts while inside.

    None are seen outside the main thread, where signals do not arrive, or where they are ignored (``nohup``).
    """
    seen = Interrupts()
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = signal.signal(signal.SIGINT, seen._note)  # noqa: SLF001  # the handler is of this class
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)
