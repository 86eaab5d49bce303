"""Diff as users get it: the same values, and how they show themselves, as a Look does."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING

from tracehunch.compare import model as plain
from tracehunch.report.screen import screen
from tracehunch.units import plural

if TYPE_CHECKING:
    from typing import TextIO

    from tracehunch.report.rich_text import RichReport


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Diff(plain.Diff):
    """Two traces compared: what ``tracehunch diff`` reports.

    ``environment`` whether times compare at all, ``scopes`` those of both, by time at stake, ``new``,
    ``gone`` and ``grown`` findings, ``regressions`` what is worse, ``cannot_tell`` what neither trace shows.

    Units: attributes hold times in whole nanoseconds (their names end in ``_ns``), JSON in microseconds.
    """

    paths: tuple[str, ...] = ()
    """The two traces as they were named; () where one of them is no file."""

    def print(
        self, *, width: int | None = None, file: TextIO | None = None, all_scopes: bool = False
    ) -> None:
        """Write the report as text, in colour on a terminal; ``width`` in columns.

        With ``all_scopes`` those of frameworks and modules are listed too.
        """
        from tracehunch.report import diff_terminal  # noqa: PLC0415  # loaded only where it is used

        out = file or sys.stdout
        out.write(
            diff_terminal.render(self, view=screen(out, width), sources=self.paths, all_scopes=all_scopes)
        )

    def to_json(self) -> str:
        """Return what ``tracehunch diff --format json`` writes, schema ``tracehunch/1``; times in us."""
        from tracehunch.report import diff_json  # noqa: PLC0415  # as above

        return diff_json.render(self).decode()

    def __repr__(self) -> str:
        changed = f"{plural(len(self.new), 'new finding')}, {len(self.gone)} gone"
        return f"<Diff: {plural(len(self.scopes), 'scope')} of both, {changed}>"

    def __str__(self) -> str:
        from tracehunch.report import diff_terminal  # noqa: PLC0415  # as above

        return diff_terminal.render(self, sources=self.paths).rstrip("\n")

    def _repr_html_(self) -> str:
        return f'<pre style="line-height: 1.3">{escape(str(self))}</pre>'

    def __rich__(self) -> RichReport:
        from tracehunch.report import diff_terminal  # noqa: PLC0415  # as above
        from tracehunch.report.rich_text import RichReport  # noqa: PLC0415  # as above

        return RichReport(lambda view: diff_terminal.report_lines(self, view, sources=self.paths))


def shown(diff: plain.Diff, paths: tuple[str, ...] = ()) -> Diff:
    """Return a comparison as users get it; ``paths`` are what the report names."""
    values = {one.name: getattr(diff, one.name) for one in fields(plain.Diff)}
    return Diff(**values, paths=paths)
