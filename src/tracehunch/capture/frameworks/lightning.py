"""A ``Callback`` for Lightning's ``Trainer``: a step is a batch after which the parameters were updated."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.frameworks.missing import is_there, load
from tracehunch.capture.frameworks.training import TrainingRecorder, silent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracehunch.capture.frameworks.training import Plan

_NAMES: Final = ("lightning.pytorch", "pytorch_lightning")
"""The package goes by two names, whose classes are not the same."""


def lightning_callback(plan: Plan) -> Any:
    """Make the callback, of the name that the program has imported if it is only one.

    Raises:
        CaptureError: Lightning is not installed, or cannot be loaded.

    """
    there = [name for name in _NAMES if is_there(name)] or [_NAMES[0]]
    used = [name for name in there if name in sys.modules]
    return _callback_class(load((used or there)[0], "lightning").Callback)(plan)


@cache
def _callback_class(base: Any) -> Callable[[Plan], Any]:
    class TracehunchCallback(base):  # type: ignore[misc]  # known only when it runs
        """Records a few steps of a training, then does nothing."""

        def __init__(self, plan: Plan) -> None:
            self._training = TrainingRecorder(plan)
            self._updates = 0

        def __reduce__(self) -> tuple[Callable[[Plan], Any], tuple[Plan]]:
            return lightning_callback, (self._training.plan,)  # for strategies that spawn processes

        @property
        def look(self) -> Any:
            """What was seen, on the main process, once the steps are recorded; None before."""
            return self._training.look

        @property
        def trace_path(self) -> Path | None:
            """The trace that was written; None before."""
            return self._training.trace_path

        def on_train_start(self, trainer: Any, pl_module: Any) -> None:
            self._updates = trainer.global_step
            self._training.begin(pl_module.print if trainer.is_global_zero else silent)

        def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
            if trainer.global_step != self._updates:
                self._updates = trainer.global_step
                self._training.step()

        def on_train_end(self, *_: Any, **__: Any) -> None:
            self._training.end()

        def on_exception(self, *_: Any, **__: Any) -> None:
            self._training.end()

    return TracehunchCallback
