"""Many ranks on a page: each rank's time, skew over the run, collectives, clocks, and what is odd."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import finding_texts, ranks_summary
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.findings import finding_cards
from tracehunch.report.html.ranks.bars import bars
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.ranks_bars import parts_ns
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
from tracehunch.report.ranks_rows import (
    FEW,
    OVERLAP,
    a_step_us,
    has_breakdown,
    overlap,
    per_step,
    rank_texts,
    rank_words,
    shown_ranks,
)
from tracehunch.report.ranks_spread import shape, spreads
from tracehunch.units import count, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.compare.ranks.model import RankRow, Ranks
    from tracehunch.report.ranks_collectives import CollectiveRow
    from tracehunch.report.ranks_collectives_text import CollectiveText
    from tracehunch.report.ranks_rows import RankText
    from tracehunch.report.ranks_spread import Spread

_MOST: Final = 1_024
"""Ranks that the table lists each; of more, those that stand out."""

_RANK: Final = (
    Head("rank"),
    Head("host step", number=True, meaning="median duration of a profiler step on the host"),
    Head("window", number=True, meaning="recorded time, of which the shares are"),
    Head("compute", number=True, meaning="a compute kernel runs"),
    Head("exposed", number=True, meaning="communication, and no compute kernel beside it"),
    Head("copies", number=True, meaning="memcpys and memsets, and neither of the above"),
    Head("idle", number=True, meaning="nothing runs on the GPU"),
    Head("most of the idle time", wide=True),
    Head("waits", number=True, meaning="in collectives, for ranks that came later"),
    Head("delays", number=True, meaning="what others waited for this rank in collectives, all together"),
    Head("overlap", number=True, meaning="of all communication, the part that compute hides; compute has it"),
    Head("why it is shown", wide=True),
    Head("file", wide=True),
)
_COLLECTIVE: Final = (
    Head("collective"),
    Head("group", meaning="the process group, or groups of one kind"),
    Head("ranks", number=True),
    Head("message", number=True),
    Head("count", number=True),
    Head("time", number=True, meaning="median, from the last arrival to the end"),
    Head("bus bandwidth", number=True, meaning="what each rank's links carry"),
    Head("skew", number=True, meaning="median, from the first rank's arrival to the last one's"),
    Head("last rank", meaning="which came last most often"),
)


def findings_section(ranks: Ranks) -> Section:
    """Return what is wrong with the job, the worst first."""
    found = ranks_summary.findings(ranks)
    html = "".join(finding_cards(found)) or "<p>Nothing was found to report.</p>"
    return Section("findings", "Findings", html, aside=finding_texts.findings_aside(found))


def ranks_section(ranks: Ranks) -> Section | None:
    """Return where each rank's time went, as a picture and as a table; None where no rank was read."""
    if not ranks.rows:
        return None
    rows, whys = shown_ranks(ranks, all_ranks=len(ranks.rows) <= _MOST)
    blind = ranks_summary.without_gpu(ranks)
    html = bars(ranks.rows) + (f"<p><strong>cannot tell</strong> {text(blind)}</p>" if blind else "")
    each = per_step(ranks.rows)
    texts = rank_texts(rows, whys, each=each)
    listed = [_rank(row, told, each=each) for row, told in zip(rows, texts, strict=True)]
    drawn = table(_RANK, listed, caption="Ranks", sortable=True, pinned=True)
    html += f'<div class="tall">{drawn}</div>' if len(rows) > FEW else drawn
    html += f'<p class="dim">{OVERLAP}</p>'
    if len(rows) < len(ranks.rows):
        html += (
            f'<p class="dim">{count(len(rows))} of {count(len(ranks.rows))} ranks; the JSON lists all.</p>'
        )
    html += _spread(ranks) if len(ranks.rows) > 2 else ""
    return Section("ranks", "Ranks", html, aside=rank_words(each=each), styles=("bars", "ranks"))


def _rank(row: RankRow, told: RankText, *, each: bool) -> list[Cell]:
    compute, exposed, copies, idle = (_part(row, one) for one in parts_ns(row))
    more = f" and {count(len(row.labels) - 1)} more" if len(row.labels) > 1 else ""
    files = f"{code(row.labels[0])}{more}" if row.labels else ""
    return [
        Cell(told.rank, row.rank),
        Cell(told.step, row.step_us),
        Cell(told.window, row.window_ns),
        Cell(text(told.compute), compute),
        Cell(text(told.exposed), exposed),
        Cell(text(told.copies), copies),
        Cell(text(told.idle), idle),
        Cell(text(told.idle_cause)),
        Cell(told.waits, a_step_us(row, row.waited_ns, each=each)),
        Cell(told.delays, a_step_us(row, row.made_wait_ns, each=each)),
        Cell(text(told.overlapped), overlap(row)),
        Cell(text(told.why)),
        Cell(files),
    ]


def _part(row: RankRow, ns: int) -> float | None:
    return ns / row.window_ns if has_breakdown(row) and row.window_ns else None


def _spread(ranks: Ranks) -> str:
    heads = [
        Head("number"), Head("least", number=True), Head("rank", number=True), Head("median", number=True),
        Head("most", number=True), Head("rank", number=True), Head("ranks from least to most"),
    ]  # fmt: skip
    rows = [_spread_cells(one) for one in spreads(ranks.rows)]
    caption = f"All {count(len(ranks.rows))} ranks: least, median, most"
    return f"<h3>How much ranks differ</h3>{table(heads, rows, caption=caption)}" if rows else ""


def _spread_cells(one: Spread) -> list[Cell]:
    told = one.name, one.least, str(one.least_rank), one.middle, one.most, str(one.most_rank)
    drawn = f'<code class="shape">{shape(one.counts, unicode=True)}</code>'
    return [*(Cell(text(cell)) for cell in told), Cell(drawn)]


def collectives_section(ranks: Ranks) -> Section:
    """Return the collectives by kind and size, and who waits for whom."""
    rows = collective_rows(ranks)
    if not rows:
        said = f"<p><strong>cannot tell</strong> {text(why_none(ranks))}</p>"
        return Section("collectives", "Collectives", said)
    told = zip(rows, collective_texts(rows), strict=True)
    several = several_groups(rows)
    cells = [
        [_code(words.kind), Cell(text(words.group) if several else ""), *_collective(row, words)]
        for row, words in told
    ]
    html = table(_COLLECTIVE, cells, caption="Collectives", sortable=True, pinned=True)
    below = (untold_text(collective_texts(rows)), unmatched_text(ranks))
    html += "".join(f'<p class="dim">{text(one)}</p>' for one in below if one)
    late = late_texts(ranks)
    html += _bullets("Who waits for whom", late) + (f'<p class="dim">{text(WAITS)}</p>' if late else "")
    aside = "matched across ranks; timed from the last arrival to the end"
    return Section("collectives", "Collectives", html, aside=aside)


def _code(raw: str) -> Cell:
    return Cell(code(raw))


def _collective(row: CollectiveRow, words: CollectiveText) -> list[Cell]:
    numbers = (
        ("group_size", row.group_size), ("message", row.most_bytes), ("count", row.count),
        ("took", row.took_us), ("bandwidth", row.bus_bytes_per_s), ("skew", row.skew_us), ("last", None),
    )  # fmt: skip
    return [Cell(text(getattr(words, name)), value) for name, value in numbers]


def clocks_section(ranks: Ranks) -> Section | None:
    """Return how far clocks are apart; None where there is nothing to say."""
    texts, untied = clock_texts(ranks), untied_text(ranks)
    if not texts and not untied:
        return None
    heads = [
        Head("ranks"),
        Head("clock", number=True),
        Head("within", number=True),
        Head("collectives", number=True),
    ]
    rows = [[Cell(text(one)) for one in (t.ranks, t.offset, t.error, t.collectives)] for t in texts]
    html = table(heads, rows, caption="Clocks") if rows else ""
    html += f"<p><strong>cannot tell</strong> {text(untied)}</p>" if untied else ""
    aside = f"against rank {reference_rank(ranks)}'s, from the ends of collectives" if texts else ""
    return Section("clocks", "Clocks", html, aside=aside)


def odd_section(ranks: Ranks) -> Section | None:
    """Return the facts in which a rank is unlike the others; None where there are none."""
    title, heads, rows = odd_table(ranks, odd_texts(ranks))
    if not rows:
        return None
    named = ("fact", "scope")
    columns = [Head(head, number=head not in named) for head in heads]
    cells = [
        [_code(c) if h in named else Cell(text(c)) for h, c in zip(heads, row, strict=True)] for row in rows
    ]
    html = table(columns, cells, caption=title, sortable=True)
    return Section("odd", title, html, aside="facts per call of the scope")


def files_section(ranks: Ranks, sources: Sequence[str]) -> Section:
    """Return what was read, what is odd about it, and what was not read."""
    told = ranks_summary.recorded_on(ranks, sources)
    html = f'<dl class="facts">{"".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in told)}</dl>'
    html += _bullets("Warnings", [f"{one.code}: {one.message}" for one in ranks_summary.remarks(ranks)])
    html += "".join(f'<p class="dim">{text(one)}</p>' for one in ranks_summary.passed_over(ranks))
    unread = [ranks_summary.unread_text(one) for one in ranks.unread[:_MOST]]
    html += _bullets("Not read; the rest was analysed", unread)
    if more := len(ranks.unread) - len(unread):
        html += f'<p class="dim">{plural(more, "more file")}, all in the JSON</p>'
    return Section("files", "Files", html)


def _bullets(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<h3>{title}</h3><ul>{items}</ul>" if items else ""
