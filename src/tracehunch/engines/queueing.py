"""Which file is next: the largest that fits beside those that are being read, so that memory is bounded."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


class Queueing:
    """Files that wait, by what each needs; used by several threads.

    Every file gets what it needs and at least an equal share of what is allowed; all shares together are
    never more than that. With no bound (None) every file fits.
    """

    def __init__(self, needs: Mapping[int, int], allowed_bytes: int | None, workers: int) -> None:
        least = (allowed_bytes or 0) // workers
        self._shares = {at: max(need, least) for at, need in needs.items()}
        self._waiting = sorted(needs, key=lambda at: (-needs[at], at))  # the longest first: all end together
        self._allowed = allowed_bytes
        self._running: set[int] = set()
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return len(self._waiting)

    def take(self) -> tuple[int, int] | None:
        """Return the next file and its share in bytes, once it fits; None when no more will come."""
        with self._changed:
            while self._waiting:
                for at in self._waiting:
                    if self._fits(at):
                        self._waiting.remove(at)
                        self._running.add(at)
                        return at, self._shares[at]
                self._changed.wait()
            return None

    def give_back(self, at: int) -> None:
        """Let others have the memory of a file that is done."""
        with self._changed:
            self._running.discard(at)
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody take any more."""
        with self._changed:
            self._waiting.clear()
            self._changed.notify_all()

    def _fits(self, at: int) -> bool:
        if self._allowed is None or not self._running:
            return True
        return self._shares[at] + sum(self._shares[other] for other in self._running) <= self._allowed
