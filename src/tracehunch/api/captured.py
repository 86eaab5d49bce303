"""What ``profile``, ``profiled`` and ``trace_ready`` have in common: a trace to come, and a guess."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tracehunch.api.looking import check, look
from tracehunch.capture.quoting import annotation_name
from tracehunch.errors import CaptureError
from tracehunch.guess.scopes import EVERY
from tracehunch.guess.written import guess_of

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

    from tracehunch.api.measured import ScopeValues
    from tracehunch.api.shown import Look, Verdict
    from tracehunch.guess import Guess
    from tracehunch.guess.written import Written
    from tracehunch.report.rich_text import RichReport


class Captured(ABC):
    """A trace that the program writes while it runs.

    ``guess`` is what was claimed before (None for nothing), sealed: ``guess.seal``. ``look`` and what follows
    from it are worked out when they are first asked for.
    """

    def __init__(self, guess: Written | None, scope: str) -> None:
        self.scope = scope
        self.guess: Guess | None = None if guess is None else guess_of(guess, self.scope)
        self._seen: tuple[object, Look] | None = None

    @property
    @abstractmethod
    def trace_path(self) -> Path | None:
        """The trace that was written; None while there is none."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why there is no trace, or less in it than was asked for; "" if all is there."""

    @property
    def look(self) -> Look:
        """Everything the trace shows, with the verdict on the guess.

        Raises:
            CaptureError: there is no trace.
            GuessError: the guess claims times for other hardware than this.

        """
        path = self.trace_path
        if path is None:
            raise CaptureError(f"there is no trace of {self.scope}", self.reason)
        state = (path, path.stat().st_mtime_ns)  # a first step's trace is replaced by that of later ones
        if self._seen is None or self._seen[0] != state:
            seen = look(path) if self.guess is None else check(self.guess, path)
            self._seen = (state, seen)
        return self._seen[1]

    @property
    def verdict(self) -> Verdict:
        """What became of the claims: held, surprises, cannot tell. Raises as ``look``."""
        return self.look.verdict

    @property
    def facts(self) -> ScopeValues:
        """What the profiled scope shows, per call: ``p.facts["kernels"]``. Raises as ``look``."""
        return self.look.scopes[self.scope]

    def print(self, *, width: int | None = None, file: TextIO | None = None) -> None:
        """Write the report as text, in colour on a terminal; ``width`` in columns."""
        self.look.print(width=width, file=file)

    def to_json(self) -> str:
        """Return what ``tracehunch look --format json`` writes, schema ``tracehunch/1``."""
        return self.look.to_json()

    def __repr__(self) -> str:
        state = self.trace_path or self.reason or "nothing recorded yet"
        return f"<{type(self).__name__} of {self.scope}: {state}>"

    def _repr_html_(self) -> str | None:
        return None if self.trace_path is None else self.look._repr_html_()

    def __rich__(self) -> RichReport | str:
        return repr(self) if self.trace_path is None else self.look.__rich__()


def label_of(written: object) -> str:
    """Return a label as it will stand in the trace.

    Raises:
        CaptureError: it is no text, or names nothing.

    """
    todo = "name what is profiled, as tracehunch.profile('attn')"
    if not isinstance(written, str):
        raise CaptureError(f"the label {written!r} is no text", "", todo)
    if written.strip() in ("", EVERY):
        raise CaptureError(f"the label {written!r} names nothing", "", todo)
    return annotation_name(written)
