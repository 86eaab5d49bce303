"""Record one block, or repeated calls of a function, as the calls of an annotation."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tracehunch.capture.quoting import annotation_name
from tracehunch.capture.recorder import Recorder, Recording
from tracehunch.capture.torch_env import import_torch
from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Result = TypeVar("Result")


@contextmanager
def record_block(path: Path, label: str, recording: Recording) -> Iterator[None]:
    """Record the block, once and as it is, and write its trace to ``path`` when it ends.

    Raises:
        CaptureError: it cannot be recorded, or its trace not be written. What the block raises goes on.

    """
    recorder = Recorder(path, recording)
    try:
        recorder.start()
        with import_torch().profiler.record_function(annotation_name(label)):
            yield
    finally:
        recorder.stop()
    _refuse_lost(recorder)


def record_calls(
    function: Callable[[], Result], path: Path, label: str, recording: Recording, *, first: int
) -> Result:
    """Call ``function``: ``first`` times without a profiler, then through the schedule of ``recording``.

    Returns:
        What the last call returned.

    Raises:
        CaptureError: it cannot be recorded, or its trace not be written. What ``function`` raises goes on.

    """
    __tracebackhide__ = True  # in pytest, what the function raises is shown where it was raised
    annotate = import_torch().profiler.record_function
    for _ in range(first):
        function()
    recorder = Recorder(path, recording)
    try:
        recorder.start()
        while True:
            with annotate(annotation_name(label)):
                result = function()
            recorder.step()
            if recorder.detached:
                break
    finally:
        recorder.stop()
    _refuse_lost(recorder)
    return result


def _refuse_lost(recorder: Recorder) -> None:
    if recorder.trace_path is None:
        raise CaptureError("the code could not be profiled", recorder.reason)
