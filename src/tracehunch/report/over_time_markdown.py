"""A run over time as Markdown that GitHub renders: the content of the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report.cut import for_comment
from tracehunch.report.markdown import code, marker, table, text
from tracehunch.report.over_time_quiet import (
    header_lines,
    next_command,
    quiet_lines,
    verdict,
    warnings,
)
from tracehunch.report.over_time_words import SHOWN, ShiftText, shift_texts
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.model import OverTime


def render(report: OverTime, *, sources: Sequence[str] = (), all_shifts: bool = False) -> str:
    """Return the report, ending in a newline: all of it, or what fits into a comment on GitHub."""
    title = f"## tracehunch look --over-time {' '.join(code(one) for one in sources)}".rstrip()
    rows = [(text(label), text(said)) for label, said in header_lines(report)]
    blocks = [marker("over-time"), title, table((("<", None), ("<", None)), rows)]
    texts = shift_texts(report)
    shown = texts if all_shifts else texts[:SHOWN]
    blocks += (
        ["### Changes over time", *(_shift(one) for one in shown)] if texts else [f"**{verdict(report)}**"]
    )
    if len(texts) > len(shown):
        blocks.append(f"{plural(len(texts) - len(shown), 'more change')}; --all shows all")
    blocks += _bullets("The rest", [f"{text(label)}: {text(said)}" for label, said in quiet_lines(report)])
    blocks += _bullets("Warnings", [text(one) for one in warnings(report)])
    blocks.append(f"Next: {code(next_command(report))}")
    return for_comment("\n\n".join(blocks) + "\n")


def _bullets(title: str, lines: Sequence[str]) -> list[str]:
    return [f"### {title}", "\n".join(f"- {line}" for line in lines)] if lines else []


def _shift(one: ShiftText) -> str:
    runs = f"{text(one.runs)}: " if one.runs else ""
    cost = f", {text(one.cost)}" if one.cost else ""
    rows = [
        [f"{code(fact.name)} {text(fact.runs)}".rstrip(), text(fact.change), text(fact.share)]
        for fact in one.facts
    ]
    lines = [f"**{one.severity}** {runs}{text(one.head)}{cost}", ""]
    lines.append(table((("<fact", None), ("<from -> to", None), ("<", None)), rows))
    remarks = [f"also: {text(one.also_facts)}"] if one.also_facts else []
    remarks += [f"why: {text(cause)}" for cause in one.causes]
    remarks += [f"findings that {text(found)}" for found in one.findings]
    remarks += [f"seen in {text(one.around)}"] if one.around else []
    return "\n".join([*lines, "", *(f"- {remark}" for remark in remarks)]).rstrip()
