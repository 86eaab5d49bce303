"""Whether another profiler runs in this process: Kineto has room for one, and says nothing to a second.

A second one takes the events of the first; started while the first warms up, it crashes the process when the
first goes on (seen with torch 2.13). So it is looked for before a profiler is prepared or started.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable

gives_way: list[Callable[[], None]] = []
"""Called before a recorder looks for other profilers: those of a script that is watched from outside stop."""

_STEP: Final = "ProfilerStep"


class Mark(int):
    """The step count of a profiler, to be told from those that profilers made later set."""


def refuse_second(torch: Any) -> None:
    """Make sure that no profiler is recording or warming up in this process.

    Raises:
        CaptureError: one is.

    """
    for stop in tuple(gives_way):
        stop()
    if _records(torch) or (not is_alone(torch) and _warms_up(torch, None)):
        raise CaptureError(
            "a PyTorch profiler is already running",
            "a process can have one",
            "stop it first, or give it on_trace_ready=tracehunch.trace_ready(DIR)",
        )


def is_alone(torch: Any) -> bool:
    """Whether no profiler was made whose block has not ended."""
    return _STEP not in _counts(torch)


def mark(torch: Any) -> Mark:
    """Mark the profiler that was made last, and alone, so that ``was_joined`` need not search for others."""
    counts = _counts(torch)
    made = Mark(counts.get(_STEP, 0))
    if _STEP in counts:
        counts[_STEP] = made
    return made


def leave(torch: Any, marked: Mark | None) -> None:
    """After a profiler has ended that was not made alone: count the others again, which its end does not."""
    if marked is None:
        _counts(torch).setdefault(_STEP, 0)


def was_joined(torch: Any, own: Any, marked: Mark | None) -> bool:
    """Whether another profiler is in the way of ``own``, which was ``marked`` if it was made alone.

    One that is recording or warming up by now, or was made while ``own`` warmed up: if that one has run, then
    ``own`` must not go on.
    """
    action = own.current_action.name
    if _records(torch) and not action.startswith("RECORD"):
        return True
    if marked is None:
        return _warms_up(torch, own)
    return _counts(torch).get(_STEP) is not marked and (action == "WARMUP" or _warms_up(torch, own))


def has_lost(profiler: Any) -> bool:
    """Whether another profiler took what this finished one recorded; to write its trace would crash."""
    results = getattr(getattr(profiler, "profiler", profiler), "kineto_results", None)
    began_ns = getattr(results, "trace_start_ns", None)
    return began_ns is not None and began_ns() == 0


def part_from_open_scopes(torch: Any) -> None:
    """Let the annotations that are open know nothing of a recording that has just ended.

    One that ends while the next recording runs writes its end to where the first one kept it, in memory that
    is freed: a crash, sooner or later (seen with torch 2.13). No profiler may run now.
    """
    kind = torch.autograd.profiler.record_function
    for one in gc.get_objects():
        is_open = type(one) is kind and getattr(one, "record", None) is not None  # none: just being made
        if is_open and one.run_callbacks_on_exit:
            one.record = torch.ops.profiler._record_function_enter_new(one.name, one.args)  # noqa: SLF001  # as it begins


def _records(torch: Any) -> bool:
    """Whether any profiler records, in any thread."""
    return bool(torch.autograd.profiler._is_profiler_enabled)  # noqa: SLF001  # torch has no public way to ask


def _counts(torch: Any) -> dict[str, int]:
    """Return what counts the steps: has an entry from where a profiler is made to where its block ends."""
    found: dict[str, int] = torch.autograd.profiler.KinetoStepTracker._step_dict  # noqa: SLF001  # as above
    return found


def _warms_up(torch: Any, own: Any) -> bool:
    """Whether another profiler was started and is in a warm-up step: only the objects themselves know."""
    kind = torch.profiler.profile
    others = [one for one in gc.get_objects() if type(one) is kind and one is not own]
    return any(one.current_action.name == "WARMUP" and one.step_rec_fn is not None for one in others)
