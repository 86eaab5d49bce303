"""Look and Verdict as users get them: the same values, and how they show themselves.

They print nothing by themselves. ``print()`` writes what ``tracehunch look`` shows; ``to_json()`` returns its
JSON; a notebook and rich show them by themselves.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tracehunch import verdict as plain
from tracehunch.api.measured import Scopes
from tracehunch.report.layout import Line, View, draw
from tracehunch.report.screen import screen
from tracehunch.report.verdict_text import tally, verdict_lines

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TextIO

    from tracehunch.report.rich_text import RichReport


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Verdict(plain.Verdict):
    """What became of the claims: ``held``, ``surprises`` and ``cannot_tell``, each a tuple.

    A claim that the trace cannot decide is in ``cannot_tell``, with the profiler option that would show it:
    no surprises does not mean that all was checked. Surprises are ranked by the time at stake, and name the
    findings that explain them; times are microseconds per call of the scope.
    """

    def print(self, *, width: int | None = None, file: TextIO | None = None) -> None:
        """Write the outcomes as text, in colour on a terminal; ``width`` in columns."""
        out = file or sys.stdout
        out.write(self._text(screen(out, width)))

    def to_json(self) -> str:
        """Return the outcomes as JSON, schema ``tracehunch/1``: the object ``verdict`` of ``look``'s JSON."""
        from tracehunch.report import json_report  # noqa: PLC0415  # a renderer is loaded only where it is used

        return json_report.encode(
            {"schema": json_report.SCHEMA, "verdict": json_report.verdict_object(self)}
        ).decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, plain.Verdict) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash(_values(self))

    def __repr__(self) -> str:
        return f"<Verdict: {tally(self)}>" if _values(self) != ((), (), ()) else "<Verdict: nothing claimed>"

    def __str__(self) -> str:
        return self._text(View()).rstrip("\n")

    def _repr_html_(self) -> str:
        from tracehunch.report import notebook_html  # noqa: PLC0415  # as above

        return notebook_html.verdict_html(self)

    def __rich__(self) -> RichReport:
        from tracehunch.report.rich_text import RichReport  # noqa: PLC0415  # as above

        return RichReport(self._lines)

    def _text(self, view: View) -> str:
        return draw(self._lines(view), view)

    def _lines(self, view: View) -> list[Line]:
        return verdict_lines(self, view)[1:] or [("nothing was claimed",)]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Look(plain.Look):
    """Everything one look at a trace yields.

    ``facts`` what was measured, ``checked`` the findings, ``verdict`` what became of the claims,
    ``scopes["attn_fwd"]["kernels"]`` a fact of a scope per call. ``trace_path`` is the file that was looked
    at, None where there was none.
    """

    verdict: Verdict = field(default_factory=Verdict)
    trace_path: Path | None = None

    @property
    def scopes(self) -> Scopes:
        """The trace's scopes by name, each a mapping of its facts."""
        return Scopes(self.facts)

    @property
    def findings(self) -> tuple[plain.Finding, ...]:
        """What the checks saw, whether or not anybody guessed; ranked by time at stake."""
        return self.checked.findings

    def print(
        self, *, width: int | None = None, file: TextIO | None = None, all_findings: bool = False
    ) -> None:
        """Write the report as text, in colour on a terminal; ``width`` in columns."""
        from tracehunch.report import terminal  # noqa: PLC0415  # a renderer is loaded only where it is used
        from tracehunch.report.summary import Selection  # noqa: PLC0415  # as above

        out = file or sys.stdout
        selection = Selection(all_findings=all_findings)
        out.write(terminal.render(self, view=screen(out, width), selection=selection, source=self._source))

    def to_json(self) -> str:
        """Return what ``tracehunch look --format json`` writes, schema ``tracehunch/1``."""
        from tracehunch.report import json_report  # noqa: PLC0415  # as above

        return json_report.render(self).decode()

    def __eq__(self, other: object) -> bool:
        return self is other  # the arrays of two looks have no one answer

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        from tracehunch.report import terminal  # noqa: PLC0415  # as above

        return terminal.render(self, source=self._source).rstrip("\n")

    def _repr_html_(self) -> str:
        from tracehunch.report import notebook_html  # noqa: PLC0415  # as above

        return notebook_html.look_html(self, self._source)

    def __rich__(self) -> RichReport:
        from tracehunch.report import terminal  # noqa: PLC0415  # as above
        from tracehunch.report.rich_text import RichReport  # noqa: PLC0415  # as above

        return RichReport(lambda view: terminal.report_lines(self, view, source=self._source))

    @property
    def _source(self) -> str:
        return "" if self.trace_path is None else str(self.trace_path)


def shown(look: plain.Look, trace_path: Path | None = None) -> Look:
    """Return a look as users get it."""
    if isinstance(look, Look):
        return look
    came = look.verdict
    verdict = Verdict(came.held, came.surprises, came.cannot_tell)
    return Look(look.facts, look.checked, verdict, trace_path)


def _values(verdict: plain.Verdict) -> tuple[object, ...]:
    return verdict.held, verdict.surprises, verdict.cannot_tell
