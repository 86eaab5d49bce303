"""Many ranks for a terminal: what is wrong first, then each rank, collectives, clocks and odd facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import finding_texts, ranks_summary
from tracehunch.report.layout import Column, Line, Span, View, draw, paragraph, table
from tracehunch.report.ranks_bars import bar, legend
from tracehunch.report.ranks_rows import OVERLAP, per_step, rank_texts, rank_words, shown_ranks
from tracehunch.report.ranks_spread import shape, spreads
from tracehunch.report.ranks_text_together import (
    NARROW,
    WIDE,
    clocks_lines,
    collectives_lines,
    more,
    notice_lines,
    odd_lines,
    remarks_lines,
    titled,
    unread_lines,
)
from tracehunch.report.terminal import finding_lines
from tracehunch.units import cells, count, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Ranks
    from tracehunch.report.ranks_rows import RankText

_WIDEST_BAR: Final = 60
_NARROWEST_BAR: Final = 24

_RANK: Final[tuple[tuple[str, str, int, int], ...]] = (  # heading, field, at widths from .. to below
    ("rank", "rank", 0, 1_000),
    ("steps", "steps", WIDE, 1_000),
    ("step", "step", 0, NARROW),
    ("host step", "step", NARROW, 1_000),
    ("window", "window", WIDE, 1_000),
    ("compute", "compute", 0, 1_000),
    ("exposed", "exposed", 0, 1_000),
    ("copies", "copies", NARROW, 1_000),
    ("idle", "idle", 0, 1_000),
    ("waits", "waits", 0, 1_000),
    ("delays", "delays", 0, 1_000),
    ("overlap", "overlapped", NARROW, 1_000),
)


def render(
    ranks: Ranks, *, view: View | None = None, sources: Sequence[str] = (), all_ranks: bool = False
) -> str:
    """Return the report. ``sources`` are what the user named; with ``all_ranks`` nothing is folded."""
    view = view or View()
    return draw(report_lines(ranks, view, sources=sources, all_ranks=all_ranks), view)


def report_lines(
    ranks: Ranks, view: View, *, sources: Sequence[str] = (), all_ranks: bool = False
) -> list[Line]:
    """Return the lines of the report."""
    lines: list[Line] = paragraph(ranks_summary.named(sources), view, style="bold") if sources else []
    for label, text in ranks_summary.recorded_on(ranks, sources):
        lines += paragraph(text, view, first=(Span(f"  {label:<10}", "dim"),), indent=12)
    lines += notice_lines(ranks_summary.alerts(ranks), view)
    lines += _findings(ranks, view, all_findings=all_ranks)
    lines += _ranks(ranks, view, all_ranks=all_ranks)
    lines += _bars(ranks, view, all_ranks=all_ranks)
    lines += collectives_lines(ranks, view, all_rows=all_ranks)
    lines += clocks_lines(ranks, view, all_rows=all_ranks)
    lines += odd_lines(ranks, view, all_rows=all_ranks)
    lines += remarks_lines(ranks, view)
    lines += unread_lines(ranks, view, all_rows=all_ranks)
    command = ranks_summary.next_command(ranks, sources)
    return [*lines, (), (Span("Next: ", "dim"), Span(command, "bold"))]


def _findings(ranks: Ranks, view: View, *, all_findings: bool) -> list[Line]:
    found = ranks_summary.findings(ranks)
    aside = finding_texts.findings_aside(found)
    lines: list[Line] = [(), *paragraph(aside, view, first=(Span("Findings", "bold"), "  "), style="dim")]
    shown = found if all_findings else found[: ranks_summary.SHOWN]
    for one in shown:
        lines += finding_lines(one, view)
    return lines + more(len(found) - len(shown), "finding", view, before=[()])


def _ranks(ranks: Ranks, view: View, *, all_ranks: bool) -> list[Line]:
    rows, whys = shown_ranks(ranks, all_ranks=all_ranks)
    if not rows:
        return []
    each = per_step(ranks.rows)
    texts = rank_texts(rows, whys, each=each)
    fields = [(heading_, field) for heading_, field, least, most in _RANK if least <= view.width < most]
    drawn = table(
        [Column(heading_) for heading_, _ in fields],
        [[getattr(text, field) for _, field in fields] for text in texts],
        view,
    )
    few = len(rows) == len(ranks.rows)
    lines = titled(view, "Ranks", rank_words(each=each))
    lines.append(drawn[0])
    for text, line in zip(texts, drawn[1:], strict=True):
        lines += [line, *(paragraph(text.why, view, indent=8, style="dim") if text.why else [])]
    lines += paragraph(_meaning(texts), view, indent=2, style="dim")
    blind = ranks_summary.without_gpu(ranks)
    lines += (
        paragraph(blind, view, first=("  ", Span("cannot tell", "bold"), "  "), indent=4) if blind else []
    )
    return lines if few else lines + _spread(ranks, view)


def _meaning(texts: Sequence[RankText]) -> str:
    step = "host step: the median; a host may run ahead of its GPU. "
    said = (
        f"{step if any(text.step != '?' for text in texts) else ''}exposed: communication that no compute "
        "hides. waits: in collectives, for ranks that came later. delays: what all others waited for it. "
        f"{OVERLAP}"
    )
    unknown = any("?" in (text.waits, text.delays, text.step, text.compute) for text in texts)
    return f"{said} ?: cannot be told." if unknown else said


def _spread(ranks: Ranks, view: View) -> list[Line]:
    rows = [
        [
            one.name, one.least, str(one.least_rank), one.middle, one.most, str(one.most_rank),
            shape(one.counts, unicode=view.unicode),
        ]
        for one in spreads(ranks.rows)
    ]  # fmt: skip
    if not rows:
        return []
    columns = [
        Column("", "left"), Column("least"), Column("rank"), Column("median"), Column("most"), Column("rank"),
        Column("from least to most", "left"),
    ]  # fmt: skip
    title = titled(view, f"All {count(len(ranks.rows))} ranks", "--all has a line for each")
    shown = len(columns) if view.width >= NARROW else len(columns) - 1
    return [*title, *table(columns[:shown], [row[:shown] for row in rows], view)]


def _bars(ranks: Ranks, view: View, *, all_ranks: bool) -> list[Line]:
    rows, _ = shown_ranks(ranks, all_ranks=all_ranks)
    drawn = [(row, text) for row, text in zip(rows, rank_texts(rows), strict=True) if text.compute != "?"]
    if not drawn:
        return []
    lead = max(len(text.rank) for _, text in drawn) + 4
    remarks = [f"  idle: {text.idle_cause}" if text.idle_cause else "" for _, text in drawn]
    width = min(max(view.width - lead - max(map(cells, remarks)), _NARROWEST_BAR), _WIDEST_BAR)
    lines = titled(view, "Where the time went", legend(unicode=view.unicode))
    for (row, text), remark in zip(drawn, remarks, strict=True):
        blocks = bar(row, width, unicode=view.unicode)
        told = shorten(remark, view.width - lead - width)
        lines.append((f"  {text.rank:>{lead - 4}}  ", blocks, Span(told, "dim")))
    return lines
