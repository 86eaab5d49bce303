"""``on_trace_ready=tracehunch.trace_ready(DIR)``: the traces of a user's own profiler."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tracehunch.api.captured import Captured
from tracehunch.capture.finished import export_cycle

if TYPE_CHECKING:
    from tracehunch.api.looking import Profiler
    from tracehunch.api.profiling import StrPath
    from tracehunch.guess.written import Written


class TraceReady(Captured):
    """Writes each cycle of a profiler's schedule to a file; what it shows is that of the latest.

    ``trace_paths`` are all that were written, ``trace_path`` the latest.
    """

    def __init__(self, folder: Path, guess: Written | None, scope: str) -> None:
        super().__init__(guess, scope)
        self.folder = folder.absolute()  # the program may change the current one
        self.trace_paths: tuple[Path, ...] = ()

    def __call__(self, profiler: Profiler) -> None:
        """Write the trace of a cycle that has ended; PyTorch calls this."""
        path = export_cycle(profiler, self.folder)
        self.trace_paths += () if path is None else (path,)

    @property
    def trace_path(self) -> Path | None:
        """The latest trace; None while there is none."""
        return self.trace_paths[-1] if self.trace_paths else None

    @property
    def reason(self) -> str:
        """Why there is no trace."""
        return "" if self.trace_paths else "the profiler has not finished a cycle of its schedule"


def trace_ready(folder: StrPath, guess: Written | None = None, *, scope: str = "step") -> TraceReady:
    """Write the traces of your own ``torch.profiler.profile``, and hold them against a guess.

    ::

        ready = tracehunch.trace_ready("traces", guess={"kernels": "<= 902"})
        with torch.profiler.profile(schedule=..., on_trace_ready=ready) as prof:
            for batch in batches:
                train_step(batch)
                prof.step()
        ready.verdict.print()

    Each cycle becomes a file of its own, ``trace_step5.json.gz``, whole or not at all, with the machine and
    the versions in it; in a job of several ranks ``trace_step5_rank3.json.gz``. No file is overwritten.

    Args:
        folder: where the traces go; made if it is not there.
        guess: as of ``tracehunch.profile``; sealed here and now.
        scope: what claims are about that name none, and what ``.facts`` are of: a ``record_function``, or
            ``"step"`` for the profiler's steps.

    Raises:
        GuessError: the guess cannot be understood.
        CaptureError: when a cycle ends, out of ``prof.step()``: its trace cannot be written.

    """
    return TraceReady(Path(folder), guess, scope)
