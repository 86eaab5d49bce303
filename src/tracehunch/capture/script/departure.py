"""Ways out of a process that skip what comes after: os._exit, SIGTERM, a lost terminal.

What no process can see coming: SIGKILL (also by the kernel, out of memory), a crash in native code, os.exec.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from tracehunch.capture.held import ENDINGS

if TYPE_CHECKING:
    from collections.abc import Callable


class Departure:
    """Calls ``last()`` when this process is about to end without coming back to us."""

    def __init__(self, last: Callable[[], None]) -> None:
        self._last = last
        self._pid = os.getpid()
        self._exit: Any = os._exit
        self._wrapper = self._leave
        os._exit = self._wrapper  # type: ignore[assignment]  # while something is recorded
        self._signals = [
            one for one in ENDINGS if _in_main_thread() and signal.getsignal(one) is signal.SIG_DFL
        ]
        self._handler = self._end
        for one in self._signals:
            signal.signal(one, self._handler)

    def remove(self) -> None:
        """Put back what was there, but for what the program has changed itself."""
        if os._exit is self._wrapper:
            os._exit = self._exit
        for one in self._signals:
            if _in_main_thread() and signal.getsignal(one) is self._handler:
                signal.signal(one, signal.SIG_DFL)

    def _leave(self, status: int) -> None:
        if os.getpid() == self._pid:  # and not a worker process, which ends like this
            self._last()
        self._exit(status)

    def _end(self, number: int, _frame: Any) -> None:
        signal.signal(number, signal.SIG_DFL)
        self._last()
        os.kill(os.getpid(), number)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
