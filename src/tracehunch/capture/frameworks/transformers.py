"""A ``TrainerCallback`` for Hugging Face's ``Trainer``: a step is an update of the parameters."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Self

from tracehunch.capture.frameworks.missing import load
from tracehunch.capture.frameworks.training import TrainingRecorder, silent

if TYPE_CHECKING:
    from pathlib import Path

    from tracehunch.capture.frameworks.training import Plan


def trainer_callback(plan: Plan) -> Any:
    """Make the callback.

    Raises:
        CaptureError: transformers is not installed, or cannot be loaded.

    """
    load("transformers", "transformers")
    return _callback_class()(plan)


@cache
def _callback_class() -> type:
    from transformers import TrainerCallback  # noqa: PLC0415  # optional, and slow to load

    class TracehunchCallback(TrainerCallback):  # type: ignore[misc]  # has no types where it is not installed
        """Records a few steps of a training, then does nothing; ``with`` ends it where that raises."""

        def __init__(self, plan: Plan) -> None:
            self._training = TrainingRecorder(plan)

        @property
        def look(self) -> Any:
            """What was seen, on the main process, once the steps are recorded; None before."""
            return self._training.look

        @property
        def trace_path(self) -> Path | None:
            """The trace that was written; None before."""
            return self._training.trace_path

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            self._training.end()

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002  # passed by position
            say = load("tqdm.auto", "transformers").tqdm.write  # above the progress bar, if there is one
            self._training.begin(say if state.is_world_process_zero else silent)

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002  # as above
            self._training.step()

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002  # as above
            self._training.end()

    return TracehunchCallback
