"""What ranks show together, for a terminal: collectives, who waits for whom, clocks, odd facts, files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import ranks_summary
from tracehunch.report.layout import Column, Line, Span, View, paragraph, table
from tracehunch.report.ranks_clocks import clock_texts, reference_rank, untied_text
from tracehunch.report.ranks_collectives import collective_rows
from tracehunch.report.ranks_collectives_text import (
    WAITS,
    collective_texts,
    late_texts,
    several_groups,
    unmatched_text,
    untold_text,
    why_none,
)
from tracehunch.report.ranks_odd import odd_table, odd_texts
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Ranks
    from tracehunch.trace.model import Notice

WIDE: Final = 100
"""Columns from which on there is room for everything."""

NARROW: Final = 78
"""Columns below which a table leaves out what is told elsewhere."""

_LATE: Final = 5
_CLOCKS: Final = 12
_COLLECTIVE: Final[tuple[tuple[Column, str, int, int], ...]] = (  # column, field, at widths from .. to below
    (Column("collective", "left", cut="middle"), "kind", 0, 1_000),
    (Column("group", "left", cut="middle"), "group", NARROW, 1_000),
    (Column("ranks"), "group_size", NARROW, 1_000),
    (Column("message"), "message", 0, 1_000),
    (Column("count"), "count", 0, 1_000),
    (Column("time"), "took", NARROW, 1_000),
    (Column("bus GB/s"), "rate", 0, WIDE),
    (Column("bus bandwidth"), "bandwidth", WIDE, 1_000),
    (Column("skew"), "skew", 0, 1_000),
    (Column("last rank", "left"), "last", 0, 1_000),
)
_CLOCK: Final = (Column("", "left"), Column("clock"), Column("within"), Column("collectives"))
_ODD: Final = {"fact": Column("fact", "left"), "scope": Column("scope", "left", cut="middle")}
OTHER_COLUMNS: Final = (*_CLOCK, *_ODD.values(), *map(Column, ("rank", "here", "median rank", "ranks so")))

_COLLECTIVES: Final = (
    "time, skew: medians. skew: from the first rank's arrival to the last one's. bus bandwidth: what each "
    "rank's links carry, so that kinds and numbers of ranks compare. last rank: which came last most often."
)


def titled(view: View, title: str, aside: str) -> list[Line]:
    """Return a blank line and a section's title, with a remark beside it that may wrap."""
    first: Line = (Span(title, "bold"), "  ") if aside else (Span(title, "bold"),)
    return [(), *paragraph(aside, view, first=first, style="dim")]


def more(n: int, noun: str, view: View, before: Sequence[Line] = ()) -> list[Line]:
    """Say how many were folded."""
    if n <= 0:
        return []
    return [*before, *paragraph(f"{plural(n, f'more {noun}')}; --all shows all", view, indent=2, style="dim")]


def collectives_lines(ranks: Ranks, view: View, *, all_rows: bool) -> list[Line]:
    """Return the collectives by kind and size, and who waits for whom."""
    rows = collective_rows(ranks)
    lines = titled(view, "Collectives", "matched across ranks; timed from the last arrival to the end")
    if not rows:
        return lines + paragraph(
            why_none(ranks), view, first=("  ", Span("cannot tell", "bold"), "  "), indent=4
        )
    shown = rows if all_rows else rows[: ranks_summary.SHOWN]
    texts = collective_texts(shown)
    left_out = {"group"} if not several_groups(rows) else {"took"} if view.width < WIDE else set()
    columns = [
        (column, field)
        for column, field, least, most in _COLLECTIVE
        if least <= view.width < most and field not in left_out
    ]
    lines += table([one for one, _ in columns], [[getattr(t, f) for _, f in columns] for t in texts], view)
    lines += more(len(rows) - len(shown), "kind", view)
    said = f"{_COLLECTIVES} {untold_text(texts)}".rstrip()
    lines += paragraph(said, view, indent=2, style="dim")
    alone = unmatched_text(ranks)
    lines += paragraph(alone, view, indent=2, style="dim") if alone else []
    found = late_texts(ranks)
    waits_shown = found if all_rows else found[:_LATE]
    lines += titled(view, "Who waits for whom", "in collectives, over the whole recording") if found else []
    for text in waits_shown:
        lines += paragraph(text, view, indent=2)
    lines += paragraph(WAITS, view, indent=2, style="dim") if found else []
    return lines + more(len(found) - len(waits_shown), "late rank", view)


def clocks_lines(ranks: Ranks, view: View, *, all_rows: bool) -> list[Line]:
    """Return how far the clocks are apart."""
    texts, reference = clock_texts(ranks), reference_rank(ranks)
    said = untied_text(ranks)
    if not texts and not said:
        return []
    aside = f"against rank {reference}'s, from the ends of collectives" if texts else ""
    lines = titled(view, "Clocks", aside)
    shown = texts if all_rows else texts[:_CLOCKS]
    if shown:
        lines += table(_CLOCK, [[t.ranks, t.offset, t.error, t.collectives] for t in shown], view)
    lines += more(len(texts) - len(shown), "line", view)
    return lines + (
        paragraph(said, view, first=("  ", Span("cannot tell", "bold"), "  "), indent=4) if said else []
    )


def odd_lines(ranks: Ranks, view: View, *, all_rows: bool) -> list[Line]:
    """Return the facts in which a rank is unlike the others."""
    texts = odd_texts(ranks)
    if not texts:
        return []
    shown = texts if all_rows else texts[: ranks_summary.SHOWN]
    title, heads, rows = odd_table(ranks, shown)
    columns = [_ODD[head] if head in _ODD else Column(head) for head in heads]
    lines = [*titled(view, title, "facts per call of the scope"), *table(columns, rows, view)]
    return lines + more(len(texts) - len(shown), "fact", view)


def remarks_lines(ranks: Ranks, view: View) -> list[Line]:
    """Return what is odd about the files, and how many were passed over."""
    found = ranks_summary.remarks(ranks)
    lines: list[Line] = titled(view, "Warnings", "about the files") if found else []
    lines += notice_lines(found, view)
    for text in ranks_summary.passed_over(ranks):
        lines += [(), *paragraph(text, view, style="dim")]
    return lines


def notice_lines(found: Sequence[Notice], view: View) -> list[Line]:
    """Return notices, marked."""
    lines: list[Line] = []
    for notice in found:
        mark = Span("  ! ", "bold yellow" if notice.lossy else "yellow")
        lines += paragraph(f"{notice.code}: {notice.message}", view, first=(mark,))
    return lines


def unread_lines(ranks: Ranks, view: View, *, all_rows: bool) -> list[Line]:
    """Return which files gave nothing, and why."""
    shown = ranks_summary.unread_below(ranks, all_files=all_rows)
    if not shown:
        return []
    lines = titled(view, "Not read", "the rest was analysed")
    for one in shown:
        lines += paragraph(ranks_summary.unread_text(one), view, indent=2)
    return lines + more(len(ranks.unread) - len(shown), "file", view)
