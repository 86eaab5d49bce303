"""A handler for ``accelerator.profile(...)``: a step is an update of the parameters."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Self

from tracehunch.capture.frameworks.missing import load
from tracehunch.capture.frameworks.training import TrainingRecorder, silent
from tracehunch.capture.frameworks.updates import Updates

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tracehunch.capture.frameworks.training import Plan


def profile_handler(plan: Plan) -> Any:
    """Make the handler, a kind of ``ProfileKwargs``.

    Raises:
        CaptureError: accelerate is not installed, or cannot be loaded.

    """
    load("accelerate", "transformers")
    return _handler_class()(plan)


class AcceleratedTraining:
    """What ``with accelerator.profile(handler) as prof`` gives, in place of PyTorch's profiler."""

    def __init__(self, plan: Plan) -> None:
        self._training = TrainingRecorder(plan)
        self._updates: Updates | None = None

    @property
    def look(self) -> Any:
        """What was seen, on the main process, once the steps are recorded; None before."""
        return self._training.look

    @property
    def trace_path(self) -> Path | None:
        """The trace that was written; None before."""
        return self._training.trace_path

    def __enter__(self) -> Self:
        from accelerate import PartialState  # noqa: PLC0415  # optional, and slow to load

        here = PartialState()
        self._training.begin(here.print if here.is_main_process else silent)
        self._updates = Updates(self._step)
        return self

    def __exit__(self, *_: object) -> None:
        if self._updates is not None:
            self._updates.end_step()
        self._detach()
        self._training.end()

    def step(self) -> None:
        """Count a step where no optimizer does (inference); a training's steps are its updates anyway."""
        from accelerate.state import GradientState  # noqa: PLC0415  # as above

        if self._updates is None:
            return
        if self._updates.seen:
            self._updates.end_step()
            return
        gradients = GradientState()
        if gradients.sync_gradients or gradients.num_steps == 1:  # else a batch before the first update
            self._step()

    def _step(self) -> None:
        self._training.step()
        if not self._training.records:
            self._detach()

    def _detach(self) -> None:
        if self._updates is not None:
            self._updates.detach()
            self._updates = None


@cache
def _handler_class() -> Callable[[Plan], Any]:
    from accelerate.utils import ProfileKwargs  # noqa: PLC0415  # optional, and slow to load

    class TracehunchProfile(ProfileKwargs):  # type: ignore[misc]  # has no types where it is not installed
        """Give it to ``accelerator.profile``; each ``with`` records anew."""

        def __init__(self, plan: Plan) -> None:
            super().__init__()
            self._plan = plan

        def build(self) -> AcceleratedTraining:
            return AcceleratedTraining(self._plan)

    return TracehunchProfile
