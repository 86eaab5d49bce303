"""Call a function after a while, in the main thread if it can be had, whatever the program is doing."""

from __future__ import annotations

import ctypes
import math
import threading
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE_S: Final = 5.0
"""After which a main thread that is not in Python is no longer waited for."""

_PERIOD_S: Final = 0.25

_CALLBACK: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Deadline:
    """Calls ``due()`` some seconds after ``begin``, or once ``early()``; again if it returns False.

    In the main thread, between two of its instructions: a stream that is being captured into a CUDA graph
    must not be disturbed, and its own thread knows if it is. Where the main thread waits in native code, as a
    server may forever, another thread calls.
    """

    def __init__(self, due: Callable[[], bool], early: Callable[[], bool]) -> None:
        self._due = due
        self._early = early
        self._end = math.inf
        self._begun = threading.Event()
        self._done = threading.Event()
        self._native = _CALLBACK(self._from_main)
        threading.Thread(target=self._watch, name="tracehunch", daemon=True).start()

    def begin(self, seconds: float) -> None:
        """Let the time run, if it does not yet."""
        if not self._begun.is_set():
            self._end = time.monotonic() + seconds
            self._begun.set()

    def cancel(self) -> None:
        """Do not call any more."""
        self._done.set()
        self._begun.set()

    def _watch(self) -> None:
        self._begun.wait()
        while not self._done.wait(min(_PERIOD_S, max(self._end - time.monotonic(), 0))):
            if time.monotonic() >= self._end or self._early():
                self._ask()

    def _ask(self) -> None:
        ctypes.pythonapi.Py_AddPendingCall(self._native, None)
        if not self._done.wait(_PATIENCE_S):
            self._call()

    def _from_main(self, _argument: int | None) -> int:
        self._call()
        return 0

    def _call(self) -> None:
        if not self._done.is_set() and self._due():
            self._done.set()
