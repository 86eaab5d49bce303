"""One training, recorded for a few of its optimizer steps: what the callbacks have in common."""

from __future__ import annotations

import atexit
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tracehunch.capture.export import check_place
from tracehunch.capture.ranks import rank_of_job, ranked
from tracehunch.capture.recorder import Recorder, Recording
from tracehunch.capture.schedule import refuse_counts
from tracehunch.capture.torch_env import import_torch
from tracehunch.errors import CaptureError, TracehunchError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Say = Callable[[str], object]
    """Tells the user something, on the main process, as the framework does."""


class Examine(Protocol):
    """Looks at a finished trace: what was seen, and the text that says it."""

    def __call__(self, path: Path) -> tuple[object, str]:
        """May raise TracehunchError."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Where the trace goes, what is recorded, and who looks at it (None: nobody).

    Under distributed training each rank writes a file of its own (``train_rank3.json.gz``), and only the main
    process looks and tells.
    """

    path: Path
    recording: Recording
    examine: Examine | None = None

    def __post_init__(self) -> None:
        check_place(self.path)
        refuse_counts(self.recording.steps, self.recording.skip, self.recording.warmup)


class TrainingRecorder:
    """``begin``, ``step`` after each optimizer update, ``end``; all the same to a training that is recorded.

    Nothing is raised into the training: what goes wrong is told. When the training ends early, or the process
    does, what was recorded until then is written.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.look: object = None
        self.trace_path: Path | None = None
        self._recorder: Recorder | None = None
        self._say: Say = silent

    @property
    def records(self) -> bool:
        """Whether it has begun and not detached yet."""
        return self._recorder is not None

    def begin(self, say: Say) -> None:
        """Start to record; a training before this one that did not come to its end is ended."""
        if _open:
            _open[0].end()
        path = ranked(self.plan.path, rank_of_job(import_torch()))
        self._recorder, self._say = Recorder(path, self.plan.recording), say
        _open.append(self)
        atexit.register(self.end)
        try:
            self._recorder.start()
        except CaptureError as error:
            self._leave()
            say(f"tracehunch records nothing: {error}")

    def step(self) -> None:
        """Tell that the optimizer has updated the parameters; nothing once the recording is done."""
        if self._recorder is not None:
            self._recorder.step()
            if self._recorder.detached:
                self._finish(self._recorder)

    def end(self) -> None:
        """Write what was recorded, if that was not done before."""
        if self._recorder is not None:
            self._recorder.stop()
            self._finish(self._recorder)

    def _leave(self) -> None:
        self._recorder, self._say = None, silent
        _open.remove(self)
        atexit.unregister(self.end)

    def _finish(self, recorder: Recorder) -> None:
        say = self._say
        self._leave()
        self.trace_path = recorder.trace_path
        if reason := recorder.reason or _of_no_step(recorder):
            say(f"tracehunch: {reason}")
        if recorder.trace_path is not None:
            self._examine(recorder.trace_path, say)

    def _examine(self, path: Path, say: Say) -> None:
        if self.plan.examine is None or say is silent:
            return
        try:
            self.look, text = self.plan.examine(path)
        except TracehunchError as error:
            text = f"tracehunch cannot look at {path}: {error}"
        say(text)


_open: list[TrainingRecorder] = []
"""The one that records, if any: a process has one profiler, and a training that raised may still have it."""


def _of_no_step(recorder: Recorder) -> str:
    return "" if recorder.steps_recorded else "no step ended, so all that ran counts as one"


def silent(_: str) -> None:
    """Say nothing: what ranks other than the main one have to say."""
