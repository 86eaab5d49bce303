"""What users import: ``look``, ``check``, ``diff``, ``guess_from``, and the steps that they are made of."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracehunch import compare
from tracehunch.compare import Diff
from tracehunch.facts import measure
from tracehunch.guess import Claim, Guess
from tracehunch.guess.baseline import baseline
from tracehunch.guess.hunch import read_hunch
from tracehunch.guess.write import writable
from tracehunch.judge import examine
from tracehunch.judge.foreign import settle_times
from tracehunch.judge.known import known_as, new_findings
from tracehunch.trace import Trace, read
from tracehunch.tree import link
from tracehunch.verdict import Finding, Look, Verdict

Source = str | os.PathLike[str]


def look(path: Source | Trace, guesses: Sequence[Guess] = ()) -> Look:
    """Everything one look at a trace yields: facts, findings, and the verdict on the guesses.

    ``path`` may be a file of any kind that ``read`` takes, a folder (its newest trace), ``"-"``, or a Trace.

    Raises:
        ReadError: it cannot be read as a trace.

    """
    return examine(_trace(path), guesses)


def check(hunch: Source | Guess, path: Source | Trace) -> Look:
    """Look at a trace with the claims of a hunch.toml (or of a Guess).

    Raises:
        GuessError: the guess cannot be read or understood, or claims times for hardware that the trace is not
        of. ReadError: the trace cannot be read.

    """
    guess = hunch if isinstance(hunch, Guess) else read_hunch(Path(hunch)).guess
    trace = _trace(path)
    fitting, untold = settle_times(guess, trace)
    seen = examine(trace, [fitting])
    return replace(seen, verdict=seen.verdict.and_then(Verdict(cannot_tell=untold)))


def guess_from(path: Source | Trace, times: bool = False, scopes: Sequence[str] = ()) -> Guess:
    """Return what a trace shows, as a baseline for later ones; see ``tracehunch.guess.baseline``.

    Raises:
        ReadError: it cannot be read as a trace.
        GuessError: it shows nothing that could be claimed, or lacks one of ``scopes``.

    """
    seen = examine(_trace(path))
    known = sorted({one for finding in seen.checked.findings if writable(one := known_as(finding))})
    return replace(baseline(seen.facts, times=times, scopes=scopes), known=tuple(known))


def diff(before: Source | Trace, after: Source | Trace, scopes: Sequence[tuple[str, str]] = ()) -> Diff:
    """Compare two traces: what became slower or faster, what went and came, and why.

    ``scopes`` are names of scopes, before and after, that are compared whatever they are called.

    Raises:
        ReadError: one cannot be read as a trace. TracehunchError: it has no scope of a name.

    """
    return compare.diff(look(before), look(after), scopes)


def unknown_findings(seen: Look, guess: Guess) -> tuple[Finding, ...]:
    """Return the findings that were not there when the guess was made, or that have grown since."""
    return new_findings(seen.checked.findings, guess)


def _trace(path: Source | Trace) -> Trace:
    return path if isinstance(path, Trace) else read(path)


__all__ = [
    "Claim",
    "Diff",
    "Finding",
    "Guess",
    "Look",
    "Trace",
    "Verdict",
    "check",
    "diff",
    "guess_from",
    "link",
    "look",
    "measure",
    "read",
]
