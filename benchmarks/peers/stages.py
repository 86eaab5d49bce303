"""Stages of a peer's work, each timed on its own; what fails is kept and said, the rest goes on.

Drivers beside this file run under the peer's own Python, so that nothing here may need a package.
"""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_START = time.perf_counter()
ERRORS = (
    AssertionError,
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    NotImplementedError,
    OSError,
    TypeError,
    ValueError,
)
"""What peers were seen to raise on ordinary traces."""


class Stages:
    """Seconds by stage, and the errors of those that failed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: dict[str, str] = {}
        self._last = _START  # the first stage has what its imports took

    def must(self, name: str, work: Callable[[], Any]) -> Any:
        """Run a stage that everything after it needs; where it fails, so does the whole."""
        result = work()
        self._mark(name)
        return result

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        """Run a stage and return its result; None where it failed."""
        try:
            return work()
        except ERRORS as error:
            self.failed[name] = f"{type(error).__name__}: {str(error)[:80]}".removesuffix(": ")
            return None
        finally:
            self._mark(name)

    def _mark(self, name: str) -> None:
        now = time.perf_counter()
        self.seconds[name] = now - self._last
        self._last = now

    def tell(self) -> None:
        """Print what the harness reads: the last line of standard output."""
        print("\n" + json.dumps({"seconds": self.seconds, "failed": self.failed}))
        sys.stdout.flush()
