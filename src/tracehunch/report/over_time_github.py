"""A run over time as workflow commands for GitHub Actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import github
from tracehunch.report.over_time_quiet import verdict
from tracehunch.report.over_time_words import counts_text, shift_texts
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.over_time.model import OverTime
    from tracehunch.report.github import Annotation
    from tracehunch.report.over_time_words import ShiftText


def render(report: OverTime, *, sources: Sequence[str] = ()) -> str:
    """Return the commands: what changed, the worst first, then what was lost, left out or not read."""
    texts = shift_texts(report)
    noted = [_annotation(one) for one in texts]
    noted += _about_files(report)
    name = " ".join(printable(one, 200) for one in sources) or "over time"
    said = f"changes over time: {counts_text(texts)}" if texts else verdict(report)
    return github.lines(noted, f"{name}: {said}")


def _annotation(one: ShiftText) -> Annotation:
    runs = f"{one.runs}: " if one.runs else ""
    told = [
        f"{fact.name} {fact.change}{f', {fact.share}' if fact.share else ''}"
        f"{f' ({fact.runs})' if fact.runs else ''}"
        for fact in one.facts
    ]
    lines = [one.cost, *told, *(f"why: {cause}" for cause in one.causes)]
    return one.severity, f"over time: {runs}{one.head}", "\n".join(filter(None, lines))


def _about_files(report: OverTime) -> Iterator[Annotation]:
    """Damage and files that were not read are warnings: the report lacks them."""
    for label, notices in [("", report.notices), *((run.label, run.notices) for run in report.runs)]:
        for one in notices:
            message = f"{label}: {one.message}" if label else one.message
            yield "warning" if one.lossy else "note", one.code, message
    for left_out in report.left_out:
        yield "note", "left-out", left_out
    for unread in report.unread:
        yield "warning", "not read", f"{unread.label}: {unread.why}"
