"""Many ranks as a piece of HTML for notebooks, as ``notebook_html`` has a Look."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from tracehunch.report import finding_texts, ranks_summary
from tracehunch.report.notebook_parts import DIM, bold, bullets, dim, finding, folded, outer, section, table
from tracehunch.report.ranks_collectives import collective_rows
from tracehunch.report.ranks_collectives_text import WAITS, collective_texts, late_texts, why_none
from tracehunch.report.ranks_odd import odd_table, odd_texts
from tracehunch.report.ranks_rows import OVERLAP, per_step, rank_texts, rank_words, shown_ranks
from tracehunch.units import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Ranks
    from tracehunch.trace.model import Notice

_RANK: Final = (
    ("rank", "rank"),
    ("host step", "step"),
    ("window", "window"),
    ("compute", "compute"),
    ("exposed", "exposed"),
    ("copies", "copies"),
    ("idle", "idle"),
    ("most of the idle time", "idle_cause"),
    ("waits", "waits"),
    ("delays", "delays"),
    ("overlap", "overlapped"),
)
_COLLECTIVE: Final = (
    ("collective", "kind"),
    ("group", "group"),
    ("ranks", "group_size"),
    ("message", "message"),
    ("count", "count"),
    ("time", "took"),
    ("bus bandwidth", "bandwidth"),
    ("skew", "skew"),
    ("last rank", "last"),
)
_WORDS: Final = frozenset({"most of the idle time", "collective", "group", "fact", "scope"})


def ranks_html(ranks: Ranks, sources: Sequence[str] = ()) -> str:
    """Return the report: findings in full, then each rank; collectives and odd facts folded."""
    named = ranks_summary.named(sources)
    parts = [bold(named, "div") if named else "", _recorded(ranks, sources), _warnings(ranks)]
    parts += [_findings(ranks), _rows(ranks), _collectives(ranks), _odd(ranks), _remarks(ranks)]
    return outer(parts)


def _recorded(ranks: Ranks, sources: Sequence[str]) -> str:
    lines = [f"{escape(label)} {escape(said)}" for label, said in ranks_summary.recorded_on(ranks, sources)]
    first, rest = lines[0], "".join(f"<div>{line}</div>" for line in lines[1:])
    return f'<details style="{DIM}"><summary>{first}</summary>{rest}</details>'


def _warnings(ranks: Ranks) -> str:
    told = _told(ranks_summary.alerts(ranks))
    return section("Warnings", [bullets(told)]) if told else ""


def _remarks(ranks: Ranks) -> str:
    told = _told(ranks_summary.remarks(ranks))
    return folded("About the files", bullets(told), "") if told else ""


def _told(notices: Sequence[Notice]) -> list[str]:
    return [f"<li>! {escape(one.code)}: {escape(one.message)}</li>" for one in notices]


def _findings(ranks: Ranks) -> str:
    found = ranks_summary.findings(ranks)
    told = [finding(one) for one in found[: ranks_summary.SHOWN]]
    rest = len(found) - len(told)
    told += [dim(f"{count(rest)} more: print(all_ranks=True) shows them")] if rest else []
    return section(f"Findings: {finding_texts.findings_aside(found)}", told)


def _rows(ranks: Ranks) -> str:
    rows, whys = shown_ranks(ranks, all_ranks=False)
    if not rows:
        return ""
    each = per_step(ranks.rows)
    texts = rank_texts(rows, whys, each=each)
    made = table(
        [head for head, _ in _RANK],
        [[getattr(one, field) for _, field in _RANK] for one in texts],
        words=_WORDS,
    )
    blind = ranks_summary.without_gpu(ranks)
    below = [made, dim(OVERLAP), dim(f"cannot tell: {blind}" if blind else "")]
    few = f", {count(len(rows))} of {count(len(ranks.rows))}" if len(rows) < len(ranks.rows) else ""
    return section(f"Ranks{few}: {rank_words(each=each)}", below)


def _collectives(ranks: Ranks) -> str:
    texts = collective_texts(collective_rows(ranks))
    if not texts:
        return dim(f"collectives: cannot tell: {why_none(ranks)}")
    made = table(
        [head for head, _ in _COLLECTIVE],
        [[getattr(one, field) for _, field in _COLLECTIVE] for one in texts],
        words=_WORDS,
    )
    late = late_texts(ranks)
    waits = bullets([f"<li>{escape(one)}</li>" for one in late]) if late else ""
    return folded("Collectives, from the last arrival to the end", made + waits, WAITS if late else "")


def _odd(ranks: Ranks) -> str:
    title, heads, rows = odd_table(ranks, odd_texts(ranks))
    return folded(title, table(heads, rows, words=_WORDS), "facts per call of the scope") if rows else ""
