"""Many ranks as Markdown that GitHub renders: the content of the terminal, for a pull request's comment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import finding_texts, ranks_summary
from tracehunch.report.cut import for_comment
from tracehunch.report.markdown import code, finding_block, marker, table, text
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
from tracehunch.report.ranks_rows import OVERLAP, per_step, rank_texts, rank_words, shown_ranks
from tracehunch.report.ranks_spread import shape, spreads
from tracehunch.units import count, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Ranks
    from tracehunch.trace.model import Notice

_LATE: Final = 5


def render(ranks: Ranks, *, sources: Sequence[str] = (), all_ranks: bool = False) -> str:
    """Return the report, ending in a newline: all of it, or what fits into a comment on GitHub."""
    title = f"## tracehunch ranks {code(ranks_summary.named(sources))}" if sources else "## tracehunch ranks"
    blocks = [
        marker("ranks"),
        title,
        table(
            (("<", None), ("<", None)), [(k, text(v)) for k, v in ranks_summary.recorded_on(ranks, sources)]
        ),
    ]
    blocks += _notices(ranks_summary.alerts(ranks))
    blocks += _findings(ranks, all_findings=all_ranks)
    blocks += _ranks(ranks, all_ranks=all_ranks)
    blocks += _collectives(ranks, all_rows=all_ranks)
    blocks += _clocks(ranks)
    blocks += _odd(ranks, all_rows=all_ranks)
    remarks = ranks_summary.remarks(ranks)
    blocks += ["### Warnings", *_notices(remarks)] if remarks else []
    blocks += [text(one) for one in ranks_summary.passed_over(ranks)]
    unread = ranks_summary.unread_below(ranks, all_files=all_ranks)
    blocks += _bullets("Not read", [text(ranks_summary.unread_text(one)) for one in unread])
    blocks += _more(len(ranks.unread) - len(unread), "file") if unread else []
    blocks.append(f"Next: {code(ranks_summary.next_command(ranks, sources))}")
    return for_comment("\n\n".join(blocks) + "\n")


def _notices(found: Sequence[Notice]) -> list[str]:
    return ["\n".join(f"- **{text(one.code)}**: {text(one.message)}" for one in found)] if found else []


def _bullets(title: str, lines: Sequence[str]) -> list[str]:
    return [f"### {title}", "\n".join(f"- {line}" for line in lines)] if lines else []


def _more(n: int, noun: str) -> list[str]:
    return [f"{plural(n, f'more {noun}')}; --all shows all"] if n > 0 else []


def _findings(ranks: Ranks, *, all_findings: bool) -> list[str]:
    found = ranks_summary.findings(ranks)
    shown = found if all_findings else found[: ranks_summary.SHOWN]
    head = f"### Findings: {finding_texts.findings_aside(found)}"
    return [head, *(finding_block(one) for one in shown), *_more(len(found) - len(shown), "finding")]


def _ranks(ranks: Ranks, *, all_ranks: bool) -> list[str]:
    rows, whys = shown_ranks(ranks, all_ranks=all_ranks)
    if not rows:
        return []
    heads = ["rank", "steps", "host step", "window", "compute", "exposed", "copies", "idle", "<most of it"]
    heads += ["waits", "delays", "overlap", "<why it is shown"]
    each = per_step(ranks.rows)
    cells = [
        [
            one.rank, one.steps, one.step, one.window, text(one.compute), text(one.exposed),
            text(one.copies), text(one.idle), text(one.idle_cause), one.waits, one.delays,
            text(one.overlapped), text(one.why),
        ]
        for one in rank_texts(rows, whys, each=each)
    ]  # fmt: skip
    if not any(whys):
        heads, cells = heads[:-1], [line[:-1] for line in cells]
    blocks = [f"### Ranks, {rank_words(each=each)}", table([(head, None) for head in heads], cells)]
    blocks.append(OVERLAP)
    blocks += [text(blind)] if (blind := ranks_summary.without_gpu(ranks)) else []
    return blocks if len(rows) == len(ranks.rows) else blocks + _spread(ranks)


def _spread(ranks: Ranks) -> list[str]:
    cells = [
        [
            one.name, text(one.least), str(one.least_rank), text(one.middle), text(one.most),
            str(one.most_rank), code(shape(one.counts, unicode=True)),
        ]
        for one in spreads(ranks.rows)
    ]  # fmt: skip
    heads = ["<", "least", "rank", "median", "most", "rank", "<ranks from least to most"]
    title = f"### All {count(len(ranks.rows))} ranks"
    return [title, table([(head, None) for head in heads], cells)] if cells else []


def _collectives(ranks: Ranks, *, all_rows: bool) -> list[str]:
    rows = collective_rows(ranks)
    shown = rows if all_rows else rows[: ranks_summary.SHOWN]
    cells = [
        [
            code(one.kind), text(one.group), one.group_size, text(one.message), one.count, one.took,
            text(one.bandwidth), one.skew, text(one.last),
        ]
        for one in collective_texts(shown)
    ]  # fmt: skip
    heads = [
        "<collective",
        "<group",
        "ranks",
        "message",
        "count",
        "time",
        "bus bandwidth",
        "skew",
        "<last rank",
    ]
    if not several_groups(rows):
        heads, cells = [heads[0], *heads[2:]], [[line[0], *line[2:]] for line in cells]
    blocks = ["### Collectives, matched across ranks"]
    blocks += [table([(head, None) for head in heads], cells)] if cells else []
    blocks += [*_more(len(rows) - len(shown), "kind")]
    blocks += [text(untold)] if (untold := untold_text(collective_texts(shown))) else []
    said = unmatched_text(ranks) if rows else f"Cannot tell: {why_none(ranks)}"
    blocks += [text(said)] if said else []
    late = late_texts(ranks)
    told = late if all_rows else late[:_LATE]
    waits = [*_bullets("Who waits for whom", [text(one) for one in told]), text(WAITS)] if told else []
    return [*blocks, *waits]


def _clocks(ranks: Ranks) -> list[str]:
    texts, untied = clock_texts(ranks), untied_text(ranks)
    if not texts and not untied:
        return []
    heads = [("<", None), ("clock", None), ("within", None), ("collectives", None)]
    listed = table(heads, [[one.ranks, text(one.offset), text(one.error), one.collectives] for one in texts])
    title = f"### Clocks, against rank {reference_rank(ranks)}'s" if texts else "### Clocks"
    return [title, *([listed] if texts else []), *([f"Cannot tell: {text(untied)}"] if untied else [])]


def _odd(ranks: Ranks, *, all_rows: bool) -> list[str]:
    texts = odd_texts(ranks)
    shown = texts if all_rows else texts[: ranks_summary.SHOWN]
    title, heads, rows = odd_table(ranks, shown)
    named = ("fact", "scope")
    cells = [[code(c) if h in named else text(c) for h, c in zip(heads, row, strict=True)] for row in rows]
    columns = [(f"<{head}" if head in named else head, None) for head in heads]
    listed = [f"### {title}, per call", table(columns, cells)]
    return [*listed, *_more(len(texts) - len(shown), "fact")] if cells else []
