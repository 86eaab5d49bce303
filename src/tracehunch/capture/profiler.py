"""Profile repeated calls of a function and write the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.capture.recorder import Recorder, Recording
from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


def profile_calls(
    function: Callable[[], Any],
    path: Path,
    *,
    label: str,
    steps: int,
    warmup: int = 0,
    cuda: bool = False,
    shapes: bool = True,
    metadata: Mapping[str, str] | None = None,
) -> Path:
    """Call ``function`` under the profiler and write the trace of the last ``steps`` calls to ``path``.

    The schedule is wait 1, warm-up 1, active ``steps``; each call stands inside ``record_function(label)``.
    Before the profiler starts there are ``warmup`` calls, for what happens only once (library handles,
    plans).

    On CUDA the device is waited for before the recording begins, so that no kernel of an earlier call runs
    into it; between the recorded calls nobody waits, so that they overlap as they do in a program.

    ``path`` ends in ``.json`` or ``.json.gz``. ``metadata`` becomes top-level keys of the file (quotes and
    backslashes are replaced), beside the environment, which is always written. Whatever ``function`` raises
    is passed on.

    Raises:
        CaptureError: the calls cannot be recorded, or their trace not be written.

    """
    for _ in range(warmup):
        function()
    options = Recording(steps=steps, shapes=shapes, cuda=cuda, metadata=metadata or {}, label=label)
    recorder = Recorder(path, options)
    try:
        recorder.start()
        while not recorder.detached:
            function()
            recorder.step()
    finally:
        recorder.stop()
    if recorder.trace_path is None:
        raise CaptureError(f"{label} could not be profiled", recorder.reason)
    return path
