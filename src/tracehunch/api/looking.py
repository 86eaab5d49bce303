"""``look``, ``check``, ``diff``, ``guess_from``: what a trace shows, or a profiler that holds one."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from tracehunch import compare
from tracehunch.api import shown_diff
from tracehunch.api.shown import Look, shown
from tracehunch.api.shown_diff import Diff
from tracehunch.capture.finished import export_finished
from tracehunch.errors import CaptureError
from tracehunch.guess import Guess
from tracehunch.guess.baseline import baseline
from tracehunch.guess.written import Written, guess_of
from tracehunch.judge import examine
from tracehunch.judge.foreign import settle_times
from tracehunch.judge.known import known_of, new_findings
from tracehunch.trace import Trace, read
from tracehunch.verdict import Finding, Verdict
from tracehunch.verdict import Look as PlainLook


class Profiler(Protocol):
    """A ``torch.profiler.profile``, or another profiler of PyTorch's that exports a trace."""

    def export_chrome_trace(self, path: str) -> object:
        """Write the trace to a file."""


@runtime_checkable
class Recorded(Protocol):
    """What ``tracehunch.profile``, ``profiled`` and ``trace_ready`` give: it has a file, or says why not."""

    @property
    def trace_path(self) -> Path | None:
        """The trace that was written; None while there is none."""

    @property
    def reason(self) -> str:
        """Why there is none."""


Source = str | os.PathLike[str] | Trace | Profiler | Recorded


def look(source: Source, guesses: Sequence[Guess] = ()) -> Look:
    """Take one look at a trace: what it shows, what is wrong with it, what became of the guesses.

    ``source`` may be a file of any kind that ``read`` takes, a folder (its newest trace), ``"-"``, a Trace,
    what ``tracehunch.profile`` gave, or a ``torch.profiler.profile`` that has finished (after its ``with``
    block, or in ``on_trace_ready``). The latter writes its trace once: the file is kept at
    ``look(...).trace_path``, in the system's folder for temporary files.

    Raises:
        ReadError: it cannot be read as a trace.
        CaptureError: the profiler still runs, or has no trace to give.

    """
    trace, path = _traced(source)
    return shown(examine(trace, guesses), path)


def check(hunch: Written, source: Source, scope: str = "") -> Look:
    """Look at a trace with claims: a hunch.toml, a Guess, or a mapping such as ``{"kernels": 5}``.

    ``scope`` is what the claims of a mapping are about that names none.

    Raises:
        GuessError: the guess cannot be read or understood, or claims times for hardware that the trace is not
        of.
        ReadError, CaptureError: as ``look``.

    """
    guess = guess_of(hunch, scope)
    trace, path = _traced(source)
    fitting, untold = settle_times(guess, trace)
    seen = examine(trace, [fitting])
    return shown(replace(seen, verdict=seen.verdict.and_then(Verdict(cannot_tell=untold))), path)


def guess_from(source: Source, times: bool = False, scopes: Sequence[str] = ()) -> Guess:
    """Return what a trace shows, as a baseline for later ones; see ``tracehunch.guess.baseline``.

    Raises:
        ReadError, CaptureError: as ``look``.
        GuessError: it shows nothing that could be claimed, or lacks one of ``scopes``.

    """
    seen = examine(_traced(source)[0])
    made = baseline(seen.facts, times=times, scopes=scopes)
    return replace(made, known=known_of(seen.checked.findings))


def diff(before: Source, after: Source, scopes: Sequence[tuple[str, str]] = ()) -> Diff:
    """Compare two traces: what became slower or faster, what went and came, and why.

    The answer shows itself as ``look``'s does: ``print()``, ``to_json()``, by itself in a notebook and with
    rich.

    ``scopes`` are names of scopes, before and after, that are compared whatever they are called.

    Raises:
        ReadError, CaptureError: as ``look``.
        TracehunchError: one has no scope of a name.

    """
    looks = look(before), look(after)
    named = [str(one.trace_path) for one in looks if one.trace_path is not None]
    return shown_diff.shown(compare.diff(*looks, scopes), tuple(named) if len(named) == len(looks) else ())


def unknown_findings(seen: PlainLook, guess: Guess) -> tuple[Finding, ...]:
    """Return the findings that were not there when the guess was made, or that have grown since."""
    return new_findings(seen.checked.findings, guess)


def _traced(source: Source) -> tuple[Trace, Path | None]:
    """Return the trace, and the file that it is in."""
    if isinstance(source, Trace):
        return source, None
    if isinstance(source, str | os.PathLike):
        trace = read(source)
        path = Path(source)
        return trace, None if source == "-" else path / trace.label if path.is_dir() else path
    if isinstance(source, Recorded):
        if source.trace_path is None:
            raise CaptureError("there is no trace to look at", source.reason)
        return read(source.trace_path), source.trace_path
    path = Path(tempfile.mkdtemp(prefix="tracehunch-")) / "profile.json.gz"
    try:
        export_finished(source, path, flags=False)
    except CaptureError:
        path.parent.rmdir()
        raise
    return read(path), path
