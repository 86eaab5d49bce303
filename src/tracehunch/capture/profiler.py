"""Profile repeated calls of a function and write the trace."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tracehunch.capture.fingerprint import as_json, fingerprint
from tracehunch.capture.torch_env import import_torch
from tracehunch.trace.environment import ENVIRONMENT_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

WAIT = WARM_UP = 1
"""Steps the profiler's schedule lets pass, and those in which it runs but drops what it sees."""


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
    """
    torch = import_torch()
    wait_for_device = torch.cuda.synchronize if cuda else _nothing
    for _ in range(warmup):
        function()
    wait_for_device()
    profiler = _profiler(torch, path, steps=steps, cuda=cuda, shapes=shapes)
    for key, value in (metadata or {}).items():
        profiler.preset_metadata_json(key, _quoted(value))
    with _recording(profiler):
        for step in range(WAIT + WARM_UP + steps):
            with torch.profiler.record_function(label):
                function()
            if step < WAIT + WARM_UP:
                wait_for_device()
            profiler.step()
    return path


def _profiler(torch: Any, path: Path, *, steps: int, cuda: bool, shapes: bool) -> Any:
    """Make a profiler that writes its trace, and the environment into it."""
    kinds = torch.profiler.ProfilerActivity
    made = torch.profiler.profile(
        activities=[kinds.CPU, kinds.CUDA] if cuda else [kinds.CPU],
        schedule=torch.profiler.schedule(wait=WAIT, warmup=WARM_UP, active=steps, repeat=1),
        on_trace_ready=lambda finished: finished.export_chrome_trace(str(path)),
        record_shapes=shapes,
    )
    made.preset_metadata_json(ENVIRONMENT_KEY, as_json(fingerprint(torch, cuda=cuda)))
    made.preset_metadata_json("host_name", _quoted(""))  # which Kineto would write
    return made


@contextmanager
def _recording(profiler: Any) -> Iterator[None]:
    """Run the profiler. What is raised within goes on, whatever the profiler says to being stopped."""
    profiler.__enter__()
    try:
        yield
    except BaseException:
        with suppress(AssertionError, RuntimeError):
            profiler.__exit__(*sys.exc_info())
        raise
    profiler.__exit__(None, None, None)


def _quoted(text: str) -> str:
    """Make a JSON string without escapes: Kineto writes a slash for every backslash, breaking them."""
    plain = text.replace("\\", "/").replace('"', "'")
    return f'"{"".join(one if one.isprintable() else "?" for one in plain)}"'


def _nothing() -> None:
    """Do nothing: a CPU is always done."""
