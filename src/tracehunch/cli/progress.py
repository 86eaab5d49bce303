"""Progress on stderr while a file is read: only on a terminal, only for work of more than a second."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tracehunch.units import printable, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Progress

_PATIENCE_S: Final = 1.0


@contextmanager
def reading(label: str) -> Iterator[Callable[[float], None] | None]:
    """Yield a function that takes the fraction done, or None where nobody watches."""
    ending = not threading.main_thread().is_alive()  # exit handlers can start no thread to draw in
    if ending or sys.stderr is None or not sys.stderr.isatty():  # None: closed
        yield None
        return
    bar = _Bar(f"reading {shorten(printable(label), 40)}")
    try:
        yield bar.advance
    finally:
        bar.stop()


class _Bar:
    """A bar that appears only after a while, so that short work does not flicker."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._begun = time.monotonic()
        self._progress: Progress | None = None

    def advance(self, done: float) -> None:
        """Show how much is done (0 to 1)."""
        if self._progress is None and time.monotonic() - self._begun > _PATIENCE_S:
            self._progress = self._started()
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=done)

    def stop(self) -> None:
        """Take the bar away."""
        if self._progress is not None:
            self._progress.stop()

    def _started(self) -> Progress:
        from rich.console import Console  # noqa: PLC0415  # only long work on a terminal pays for it
        from rich.markup import escape  # noqa: PLC0415  # loaded only where it is needed
        from rich.progress import Progress  # noqa: PLC0415  # loaded only where it is needed

        progress = Progress(console=Console(stderr=True), transient=True)
        progress.add_task(escape(self._label), total=1.0)
        progress.start()
        return progress
