"""``with tracehunch.profile("attn_fwd", guess=...) as p``: record a block, or a few steps of a loop in it."""

from __future__ import annotations

import atexit
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.api.captured import Captured, label_of
from tracehunch.capture.ranks import rank_of_job, ranked
from tracehunch.capture.recorder import Recorder, Recording
from tracehunch.capture.torch_env import import_torch
from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from tracehunch.guess.written import Written

StrPath = str | os.PathLike[str]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 60  # characters of a label in a file's name


class Profile(Captured):
    """What ``profile`` returns: a context manager; after it, what was seen.

    ``trace_path`` the file, ``look`` all that it shows, ``verdict`` what became of the guess, ``facts`` those
    of the labelled scope, ``reason`` why there is no trace or less than was asked for, ``steps_recorded``.
    """

    def __init__(self, label: str, guess: Written | None, path: StrPath | None, recording: Recording) -> None:
        super().__init__(guess, label_of(label))
        self._path = path
        self._recording = recording
        self._recorder: Recorder | None = None

    @property
    def trace_path(self) -> Path | None:
        """The trace that was written; None while there is none."""
        return None if self._recorder is None else self._recorder.trace_path

    @property
    def reason(self) -> str:
        """Why there is no trace, or less in it than was asked for; "" if all is there."""
        if self._recorder is None:
            return "nothing was recorded yet"
        running = not self._recorder.detached and self._recorder.trace_path is None
        return "the block has not ended" if running else self._recorder.reason or self._recorder.note

    @property
    def steps_recorded(self) -> int:
        """How many complete steps the trace holds; 0 for a block without ``step()``."""
        return 0 if self._recorder is None else self._recorder.steps_recorded

    @property
    def detached(self) -> bool:
        """Whether the profiler is gone, and ``step()`` does nothing any more."""
        return self._recorder is not None and self._recorder.detached

    def step(self) -> None:
        """Tell that a step of the loop has ended: each recorded step is one call of the label."""
        if self._recorder is None:
            raise CaptureError("step() outside the with block", "", "call it at the end of each step in it")
        self._recorder.step()

    def start(self) -> None:
        """Begin, as the ``with`` statement does.

        Raises:
            CaptureError: torch cannot be used, a profiler runs already, or the path cannot be written.

        """
        if self._recorder is not None:
            raise CaptureError(f"{self.scope} was profiled before", "", "make another tracehunch.profile")
        recorder = Recorder(path_of(self.scope, self._path), self._recording)
        atexit.register(self.stop)  # a profiler that still runs then would crash the process
        self._recorder = recorder
        try:
            recorder.start()
        except CaptureError:
            self._recorder = None
            atexit.unregister(self.stop)
            raise

    def stop(self) -> None:
        """End, as the ``with`` statement does; does nothing if it has."""
        if self._recorder is not None:
            self._recorder.stop()
            atexit.unregister(self.stop)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()


def profile(
    label: str,
    guess: Written | None = None,
    *,
    path: StrPath | None = None,
    steps: int = 3,
    skip: int | None = None,
    warmup: int = 1,
    shapes: bool = True,
    stacks: bool = False,
    memory: bool = False,
    cuda: bool | None = None,
) -> Profile:
    """Profile a block, and hold what it did against a guess that was made before.

    ::

        with tracehunch.profile("attn_fwd", guess={"kernels": 5, "gpu_time": "< 200us"}) as p:
            attention(q, k, v)
        p.verdict.print()

    Without ``p.step()`` the block is one call of ``label``. With it the steps are: the first one is recorded
    by itself, ``warmup`` steps pass, ``steps`` are recorded and take the first one's place; then the profiler
    is gone, and the rest of the loop runs as without it.

    Args:
        label: the scope that facts and claims are about; it becomes a ``record_function``.
        guess: claims in the words of hunch.toml, as ``{"kernels": 5, "sdpa.backend": "flash"}``, several such
            with a ``"scope"`` each, a Guess, or the path of a hunch.toml. Sealed here and now.
        path: of the trace, ``.json`` or ``.json.gz``; in a job of several ranks the rank is added. By default
            a file in the system's folder for temporary files, which stays there.
        steps: how many steps of a loop to record.
        skip: how many steps pass before ``warmup``; then nothing is recorded of a block that has fewer.
        warmup: steps in which the profiler runs and drops what it sees.
        shapes: record the shapes of tensors, which FLOPs and bytes are worked out from.
        stacks: record Python stacks, which modules are known by; slow.
        memory: record allocations.
        cuda: whether to record the GPU; by default where PyTorch finds one.

    Raises:
        GuessError: the guess cannot be understood.
        CaptureError: on entering: torch cannot be used, a profiler runs already, ``path`` cannot be written.

    """
    recording = Recording(
        skip=skip or 0,
        warmup=warmup,
        steps=steps,
        shapes=shapes,
        stacks=stacks,
        memory=memory,
        cuda=cuda,
        from_start=skip is None,
        label=label,
    )
    return Profile(label, guess, path, recording)


def path_of(label: str, path: StrPath | None) -> Path:
    """Return where a trace goes: the path that was asked for, of this rank, or a new one for temporary files.

    Raises:
        CaptureError: torch cannot be used.

    """
    torch = import_torch()
    if path is None:
        name = _UNSAFE.sub("_", label)[:_LONGEST].strip("._") or "profile"
        path = Path(tempfile.mkdtemp(prefix="tracehunch-")) / f"{name}.json.gz"
    return ranked(Path(path), rank_of_job(torch))
