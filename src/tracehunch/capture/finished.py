"""The trace of a profiler object that a user hands over: whether it has one, and writing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.export import OWN_DOING, export_whole
from tracehunch.capture.fingerprint import as_json, fingerprint
from tracehunch.capture.ranks import rank_of_job, ranked
from tracehunch.capture.torch_env import import_torch
from tracehunch.errors import CaptureError
from tracehunch.trace.environment import ENVIRONMENT_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TODO: Final = "look after its with block (or .stop()), or in on_trace_ready=tracehunch.trace_ready(DIR)"


def export_finished(profiler: Any, path: Path, *, flags: bool, unfinished: Sequence[str] = ()) -> None:
    """Write the trace of a finished ``torch.profiler.profile`` (or ``torch.autograd.profiler.profile``).

    The environment is written with it, PyTorch's flags only with ``flags``: where they are still as they were
    in the recorded code. ``unfinished`` as of ``export_whole``.

    Raises:
        CaptureError: it is no profiler, still records, has recorded nothing, or its trace cannot be written.

    """
    _refuse_unfinished(profiler)
    torch = import_torch()
    found = fingerprint(torch, cuda=torch.cuda.is_available() and torch.cuda.is_initialized())
    if not flags:
        found.pop("flags", None)
    export_whole(profiler, path, unfinished, keys={ENVIRONMENT_KEY: as_json(found)})


def export_cycle(profiler: Any, folder: Path) -> Path | None:
    """Write a cycle of a profiler's schedule, as its ``on_trace_ready`` does, to a new file; return the file.

    None where the profiler was stopped before a step of the cycle had run, so that there is nothing to write.
    ``trace_step5.json.gz`` ended with step 5; rank 3 of a job writes ``trace_step5_rank3.json.gz``. What is
    there already stays: the next is ``trace_step5_2.json.gz``.

    Raises:
        CaptureError: as ``export_finished``.

    """
    rank = rank_of_job(import_torch())
    stem = f"trace_step{profiler.step_num}" if getattr(profiler, "record_steps", False) else "trace"
    path = ranked(folder / f"{stem}.json.gz", rank)
    again = 2
    while path.exists():
        path = ranked(folder / f"{stem}_{again}.json.gz", rank)
        again += 1
    begun, others = _begun_in_vain(profiler)
    if begun and not others:
        return None
    export_finished(profiler, path, flags=True, unfinished=begun)
    return path


def _begun_in_vain(profiler: Any) -> tuple[tuple[str, ...], bool]:
    """Name the step that the last ``step()`` of a loop began, where the profiler was stopped right after it.

    Returns:
        Its name, () where a step was recorded to its end; and whether there are other steps.

    """
    stopped = getattr(profiler, "record_steps", False) and profiler.current_action.name.startswith("RECORD")
    results = getattr(profiler.profiler, "kineto_results", None)
    if not stopped or results is None:
        return (), True
    last, began_ns, latest_ns, others = f"ProfilerStep#{profiler.step_num}", None, 0, False
    for event in results.events():
        name = event.name()
        if name == last:
            began_ns = event.start_ns()
        elif name.startswith("ProfilerStep"):
            others = True
        elif not name.startswith(OWN_DOING) and event.device_type().name == "CPU":
            latest_ns = max(latest_ns, event.start_ns())
    return ((last,) if began_ns is not None and latest_ns < began_ns else ()), others


def _refuse_unfinished(profiler: Any) -> None:
    if not hasattr(profiler, "export_chrome_trace"):
        what = f"cannot look at {type(profiler).__name__}"
        raise CaptureError(what, "", "give a trace's path, a Trace, or a torch.profiler.profile")
    inner = getattr(profiler, "profiler", profiler)  # the first makes one of the second for each cycle
    if inner is None:
        why = "it was not started, or its schedule is still waiting"
        raise CaptureError("this profiler has recorded nothing", why, _TODO)
    if getattr(inner, "kineto_results", None) is None:
        raise CaptureError("this profiler is still running", "its trace is there once it stops", _TODO)
