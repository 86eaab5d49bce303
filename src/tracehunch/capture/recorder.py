"""Record a few steps of a running program, write their trace, and get out of its way.

The schedule is skip, warm-up, steps; after the last step the trace is written and the profiler is dropped, so
that a job of any length costs nothing more. Whatever goes wrong with the recording after it has started is
told in ``reason`` and never raised into the program that is recorded.
"""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tracehunch.capture.export import OWN_DOING, check_place, export_whole, gigantic
from tracehunch.capture.fingerprint import as_json, fingerprint
from tracehunch.capture.held import held
from tracehunch.capture.others import (
    Mark,
    is_alone,
    leave,
    mark,
    part_from_open_scopes,
    refuse_second,
    was_joined,
)
from tracehunch.capture.quoting import annotation_name, quoted
from tracehunch.capture.schedule import only_first, refuse_counts, without_advice
from tracehunch.capture.torch_env import import_torch
from tracehunch.errors import CaptureError
from tracehunch.trace.environment import ENVIRONMENT_KEY
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Recording:
    """What to record of a program's steps.

    ``skip`` steps pass without a profiler, in ``warmup`` steps it runs and drops what it sees, ``steps`` are
    recorded. With ``from_start`` recording begins at once, before ``skip``: what it saw until the first
    ``step()`` is the trace where no recorded step follows (a block without steps, a script that ends early),
    and is replaced by the recorded steps where they do.

    ``all_threads``: record every thread, and let any of them end the recording; where PyTorch cannot, only
    the thread that starts it is recorded, and must end it.

    Each recorded step stands inside ``record_function(label)`` where there is a ``label`` (what
    Kineto cannot write of it is replaced). ``cuda``: None for where PyTorch finds a GPU. ``metadata`` becomes
    top-level keys of the file, as text.
    """

    skip: int = 1
    warmup: int = 1
    steps: int = 3
    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    cuda: bool | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    from_start: bool = False
    label: str = ""
    all_threads: bool = False


class Recorder:
    """Records one stretch of steps: ``start()``, ``step()`` after each, ``stop()`` at the end.

    ``detached`` once it is done; ``trace_path`` of the trace that was written, None while there is none;
    ``steps_recorded``, complete steps in it (0 for a block without steps); ``reason`` why it holds less than
    was asked for, "" if it does not; ``note`` on its size, "" if it is fine. Annotations of a step that had
    not ended when the recording was stopped are of the category ``unfinished_annotation``.
    """

    def __init__(self, path: Path, recording: Recording | None = None) -> None:
        self.path = path.absolute()  # the program may change the folder
        self._given = path
        self.recording = recording or Recording()
        self.detached = False
        self.trace_path: Path | None = None
        self.steps_recorded = 0
        self.reason = ""
        self.note = ""
        self._torch: Any = None
        self._profiler: Any = None
        self._annotation: Any = None
        self._marked: Mark | None = None
        self._cuda = False
        self._process = self._thread = 0
        self._everywhere: Any = None
        self._discarded = False
        self._finished = self._record_from = self._last = 0

    def start(self) -> None:
        """Load torch and start the schedule.

        Raises:
            CaptureError: torch cannot be used, a profiler runs already, the options make no sense, the path
            cannot become a trace, or this recorder was started before.

        """
        self._check()
        torch = self._torch = import_torch()
        refuse_second(torch)
        wanted = self.recording.cuda
        self._cuda = torch.cuda.is_available() if wanted is None else wanted
        self._process, self._thread = os.getpid(), threading.get_ident()
        self._everywhere = _of_all_threads(torch) if self.recording.all_threads else None
        try:
            with held():
                self._begin()
        except BaseException:  # as Ctrl-C, which had to wait
            self.discard()
            raise

    def step(self) -> None:
        """Tell that a step of the program has ended; after the last one to record, write and detach."""
        if self._profiler is not None and not self._is_forked():
            with held():
                self._go_on()

    def stop(self) -> None:
        """Write what was recorded so far, and detach; does nothing once that is done."""
        if self._profiler is not None and not self._is_forked():
            with held():
                self._close()
                self._finish()

    def _begin(self) -> None:
        alone = is_alone(self._torch)
        self._profiler = self._make()
        if self._action(0) != "NONE":
            self._wait_for_device()
            self._describe()
        with without_advice():
            self._profiler.__enter__()
        self._marked = mark(self._torch) if alone else None
        self._open()

    def _go_on(self) -> None:
        """Pass from the step that has ended to the next."""
        self._close()
        self._finished += 1
        if self._finished > self._last:
            self._finish()
        elif self._action(self._finished - 1) not in {"RECORD", self._action(self._finished)}:
            self._change()  # and not within the recording, where it would stand in the trace
        else:
            self._profiler.step()
        self._open()

    def discard(self) -> None:
        """Stop, and write nothing."""
        self._discarded = True
        self.stop()

    def abandon(self) -> None:
        """Record nothing in a forked process, where no profiler runs and what it would take piles up."""
        if self._profiler is not None:
            self._profiler = self._annotation = None
            self._detach("forked")
            self._torch.autograd._enable_record_function(False)  # noqa: FBT003, SLF001  # no public way, no name
            if self.recording.stacks:
                sys.setprofile(None)

    @property
    def has_steps(self) -> bool:
        """Whether a step that is to be recorded is complete."""
        return self._finished > self._record_from

    @property
    def is_recording(self) -> bool:
        """Whether what the program does now will be in the trace."""
        return self._profiler is not None and self._action(self._finished).startswith("RECORD")

    def _is_forked(self) -> bool:
        """Abandon it where a fork of the process that started it goes on; to stop it there hangs."""
        forked = os.getpid() != self._process
        if forked:
            self.abandon()
        return forked

    def _open(self) -> None:
        """Annotate the step that begins."""
        if self.is_recording and self.recording.label:
            self._annotation = self._torch.profiler.record_function(annotation_name(self.recording.label))
            self._annotation.__enter__()

    def _close(self) -> None:
        if self._annotation is not None:
            self._annotation.__exit__(None, None, None)
            self._annotation = None

    def _check(self) -> None:
        options = self.recording
        check_place(self._given)
        if self._torch is not None:
            raise CaptureError("this recorder was started before", "it records once", "make another one")
        refuse_counts(options.steps, options.skip, options.warmup)
        self._record_from = int(options.from_start) + options.skip + options.warmup
        self._last = self._record_from + options.steps - 1

    def _make(self) -> Any:
        profiler = self._torch.profiler
        kinds = profiler.ProfilerActivity
        return profiler.profile(
            activities=[kinds.CPU, kinds.CUDA] if self._cuda else [kinds.CPU],
            schedule=lambda step: profiler.ProfilerAction[self._action(step)],
            on_trace_ready=self._write,
            record_shapes=self.recording.shapes,
            with_stack=self.recording.stacks,
            profile_memory=self.recording.memory,
            experimental_config=self._everywhere,
        )

    def _action(self, step: int) -> str:
        """Return what the profiler does in a step, as ``torch.profiler.ProfilerAction`` names it."""
        if self.recording.from_start and step == 0:
            return "RECORD_AND_SAVE"
        if step >= self._record_from:
            return "RECORD" if step < self._last else "RECORD_AND_SAVE" if step == self._last else "NONE"
        return "WARMUP" if step >= self._record_from - self.recording.warmup else "NONE"

    def _change(self) -> None:
        """Pass to a step in which the profiler does something else than before."""
        action = self._action(self._finished)
        if action != "NONE" and was_joined(self._torch, self._profiler, self._marked):
            self._profiler.step_rec_fn = None  # by which it would still be taken for one that warms up
            self._profiler = None  # stopping it would stop the other one, or crash
            self._detach("another profiler was started in the program")
            return
        if action.startswith("RECORD"):
            self._wait_for_device()
            self._describe()
        with without_advice():
            self._profiler.step()

    def _finish(self) -> None:
        """Stop the profiler, which writes if it was recording."""
        profiler, self._profiler = self._profiler, None
        if self._everywhere is None and threading.get_ident() != self._thread:
            self._detach("it could not be stopped from another thread")  # a try crashes the process
            return
        failed = ""
        try:
            with without_advice():
                profiler.__exit__(None, None, None)
            leave(self._torch, self._marked)
        except (AssertionError, RuntimeError) as error:  # as where it is stopped in another thread
            failed = f"the profiler could not be stopped: {error}"
        self._detach(failed or self.reason or self._shortfall())

    def _detach(self, reason: str) -> None:
        self.detached = True
        self.reason = reason

    def _shortfall(self) -> str:
        """Return what an early end leaves out, "" for nothing."""
        wanted, ended = plural(self.recording.steps, "step"), plural(self._finished, "step")
        if self.trace_path is None:
            before = plural(self._record_from, "step")
            return f"it ended after {ended}, and the first {before} only warm up"
        if self.recording.from_start and self._finished <= self._record_from:
            return only_first(self._finished)
        complete = self.steps_recorded == self.recording.steps
        return "" if complete else f"ended after {self.steps_recorded} of {wanted}"

    def _describe(self) -> None:
        """Write the environment as it is when recording begins: by then a job has chosen its device."""
        said = {key: quoted(value) for key, value in self.recording.metadata.items()}
        said[ENVIRONMENT_KEY] = as_json(fingerprint(self._torch, cuda=self._cuda))
        said["host_name"] = quoted("")  # which Kineto would write
        for key, value in said.items():
            self._profiler.preset_metadata_json(key, value)

    def _wait_for_device(self) -> None:
        """Let kernels of earlier steps end, so that none runs into the recording."""
        if self._cuda and self._torch.cuda.is_initialized():
            self._torch.cuda.synchronize()

    def _write(self, finished: Any) -> None:
        """Write a stretch that has ended, unless there is nothing in it or the first step is worth more."""
        part_from_open_scopes(self._torch)
        if self._discarded:
            return
        first = self.recording.from_start and self._finished <= 1 and self.trace_path is None
        complete = self._finished if first else self._finished - self._record_from
        early = not first and complete < self.recording.steps
        if early and complete == 0 and (self.trace_path is not None or self._is_empty(finished)):
            return
        try:
            unfinished = (
                (f"ProfilerStep#{self._finished}", annotation_name(self.recording.label)) if early else ()
            )
            size_bytes = export_whole(finished, self.path, unfinished)
        except CaptureError as error:
            self.reason = str(error)
            return
        self.trace_path, self.steps_recorded, self.reason = self.path, complete, ""
        self.note = gigantic(size_bytes, complete)

    def _is_empty(self, finished: Any) -> bool:
        """Whether a profiler saw nothing but its own doing, and ours."""
        own = (*OWN_DOING, annotation_name(self.recording.label) or OWN_DOING[0])
        return all(event.name.startswith(own) for event in finished.events())


def _of_all_threads(torch: Any) -> Any:
    """Return the profiler's setting to record all threads, None where this PyTorch has none."""
    try:
        return torch.profiler._ExperimentalConfig(profile_all_threads=True)  # noqa: SLF001  # the only way to it
    except TypeError:
        return None
