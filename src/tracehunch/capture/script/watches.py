"""All that is watched in a program's PyTorch, and that comes off again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.capture.script.arrival import when_imported
from tracehunch.capture.script.forwards import Forwards
from tracehunch.capture.script.optimizers import Optimizers
from tracehunch.capture.script.rivals import Rivals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from tracehunch.capture.script.finder import Kind


class Watches:
    """Forwards, optimizers, and profilers of the program's own; only those ``kinds`` of steps that matter."""

    def __init__(
        self,
        torch: Any,
        kinds: Collection[Kind],
        forward: Callable[[int], None],
        optimizer: Callable[[int], None],
        rival: Callable[[], None],
    ) -> None:
        self._forwards = Forwards(torch, forward) if "forward" in kinds else None
        self._optimizers = Optimizers(torch, optimizer) if "optimizer" in kinds else None
        self._rivals: Rivals | None = Rivals(torch, rival)
        when_imported("torch._dynamo", self._compiler_came)

    def keep(self, kinds: Collection[Kind], *, rivals: bool) -> None:
        """Stop watching what is of no interest any more."""
        if "forward" not in kinds and self._forwards is not None:
            self._forwards.remove()
            self._forwards = None
        if "optimizer" not in kinds and self._optimizers is not None:
            self._optimizers.remove()
            self._optimizers = None
        if not rivals and self._rivals is not None:
            self._rivals.remove()
            self._rivals = None

    def _compiler_came(self, compiler: Any) -> None:
        for watch in (self._forwards, self._optimizers):
            if watch is not None:
                watch.keep_from(compiler)
