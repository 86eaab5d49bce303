"""Ranks as users get them: the same values, and how they show themselves, as a Look does."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from tracehunch.compare.ranks import model as plain
from tracehunch.report.screen import screen
from tracehunch.units import plural

if TYPE_CHECKING:
    from typing import TextIO

    from tracehunch.report.rich_text import RichReport


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Ranks(plain.Ranks):
    """One job, all ranks together: what ``tracehunch ranks`` reports.

    ``findings`` what is wrong, ``rows`` a rank each, ``matched`` collectives on all ranks, ``bandwidth``,
    ``clocks``, ``odd`` facts in which a rank differs; ``missing`` ranks, ``notices`` and ``unread`` files.

    Units: attributes hold times and stamps in whole nanoseconds (their names end in ``_ns``), but for the few
    that end in ``_us``, which are float microseconds as all times in JSON; ``drift_ppm`` in parts per
    million, bandwidths in bytes per second. None: it cannot be told.
    """

    paths: tuple[str, ...] = ()
    """What was asked for; named in the report."""

    def print(self, *, width: int | None = None, file: TextIO | None = None, all_ranks: bool = False) -> None:
        """Write the report as text, in colour on a terminal; ``width`` in columns.

        With ``all_ranks`` every rank, collective and finding is shown, not the first few.
        """
        from tracehunch.report import ranks_text  # noqa: PLC0415  # a renderer is loaded only where it is used

        out = file or sys.stdout
        view = screen(out, width)
        out.write(ranks_text.render(self, view=view, sources=self.paths, all_ranks=all_ranks))

    def to_json(self) -> str:
        """Return what ``tracehunch ranks --format json`` writes, schema ``tracehunch/1``; times in us."""
        from tracehunch.report import ranks_json  # noqa: PLC0415  # as above

        return ranks_json.render(self).decode()

    def __repr__(self) -> str:
        missing = f", {len(self.missing)} missing" if self.missing else ""
        return f"<Ranks: {plural(len(self.rows), 'rank')}{missing}, {plural(len(self.findings), 'finding')}>"

    def __str__(self) -> str:
        from tracehunch.report import ranks_text  # noqa: PLC0415  # as above

        return ranks_text.render(self, sources=self.paths).rstrip("\n")

    def _repr_html_(self) -> str:
        from tracehunch.report import notebook_ranks  # noqa: PLC0415  # as above

        return notebook_ranks.ranks_html(self, self.paths)

    def __rich__(self) -> RichReport:
        from tracehunch.report import ranks_text  # noqa: PLC0415  # as above
        from tracehunch.report.rich_text import RichReport  # noqa: PLC0415  # as above

        return RichReport(lambda view: ranks_text.report_lines(self, view, sources=self.paths))


def shown(ranks: plain.Ranks, paths: tuple[str, ...] = ()) -> Ranks:
    """Return ranks as users get them; ``paths`` are what the report names."""
    values = {one.name: getattr(ranks, one.name) for one in fields(plain.Ranks)}
    return Ranks(**values, paths=paths)
