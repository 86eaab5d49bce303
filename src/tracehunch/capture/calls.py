"""Record the first calls of a function wherever they come from, and get out of its way."""

from __future__ import annotations

import atexit
import threading
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from tracehunch.capture.quoting import annotation_name
from tracehunch.capture.recorder import Recorder, Recording
from tracehunch.capture.schedule import refuse_counts
from tracehunch.capture.torch_env import import_torch
from tracehunch.errors import CaptureError
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


class CallRecorder:
    """Records ``calls`` calls of a function, each as a call of ``recording.label``.

    The first call, in which happens what happens only once, is recorded by itself; the ``calls`` calls after
    it take its place. With ``skip`` that many pass instead, and nothing is recorded of fewer. What runs
    between the recorded calls is in the trace, outside the label.

    ``detached`` once it is done, ``trace_path`` and ``reason`` as of Recorder. Nothing that goes wrong with
    the recording is raised into the function.

    Raises:
        CaptureError: when it is made, numbers of calls that make no sense.

    """

    def __init__(self, path: Callable[[], Path], calls: int, skip: int | None, recording: Recording) -> None:
        self.detached = False
        self.trace_path: Path | None = None
        self.reason = "it was not called yet"
        self._path = path
        self._place: Path | None = None
        self._calls = calls
        self._lead = 1 if skip is None else skip
        refuse_counts(calls, self._lead)
        self._alone = skip is None
        self._recording = replace(recording, skip=0, warmup=0, label="")
        self._label = annotation_name(recording.label)
        self._seen = 0
        self._recorder: Recorder | None = None
        self._thread = 0
        self._free = threading.Lock()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Record a call, if it is due; one within another, or beside it in another thread, is not."""
        if not self._free.acquire(blocking=False):
            yield
            return
        try:
            with self._begun():
                yield
        finally:
            self._end()
            self._free.release()

    def stop(self) -> None:
        """Stop before all calls were seen, and write what there is; does nothing if it has ended."""
        if self._recorder is not None:
            self._recorder.stop()
            self._take()
        self.detached = True

    def _begun(self) -> AbstractContextManager[object]:
        """Begin to record if this call is due, and annotate it if it is recorded."""
        if self._recorder is None and not self.detached:
            if self._alone and self._seen == 0:
                self._start(1)
            elif self._seen == self._lead:
                self._start(self._calls)
        if self._recorder is None or self._thread != threading.get_ident():
            return nullcontext()
        annotation: AbstractContextManager[object] = import_torch().profiler.record_function(self._label)
        return annotation

    def _start(self, calls: int) -> None:
        atexit.register(self.stop)
        self._thread = threading.get_ident()
        try:
            self._place = self._place or self._path()
            self._recorder = Recorder(self._place, replace(self._recording, steps=calls))
            self._recorder.start()
        except CaptureError as error:
            atexit.unregister(self.stop)
            self.reason, self.detached, self._recorder = str(error), True, None

    def _end(self) -> None:
        if self.detached or (self._recorder is not None and self._thread != threading.get_ident()):
            return
        self._seen += 1
        self.reason = f"it was called {plural(self._seen, 'time')}, of which {self._lead} only warm up"
        if self._recorder is not None:
            self._recorder.step()
            if self._recorder.detached:
                self._take()
        self.detached = self._seen >= self._lead + self._calls

    def _take(self) -> None:
        """Take over what a recorder has come to."""
        recorder, self._recorder = self._recorder, None
        atexit.unregister(self.stop)
        if recorder is None:
            return
        self.trace_path = recorder.trace_path or self.trace_path
        self.reason = recorder.reason or recorder.note
        if self._alone and self._seen == 1:
            self.reason = "only the first call was recorded"
