"""Many ranks as workflow commands for GitHub Actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import finding_texts, github, ranks_summary
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.ranks.model import Ranks
    from tracehunch.report.github import Annotation


def render(ranks: Ranks, *, sources: Sequence[str] = ()) -> str:
    """Return the commands: findings, the worst first, then what is missing or could not be read."""
    found = ranks_summary.findings(ranks)
    noted = [
        (one.severity, f"{one.id} in {one.scope}" if one.scope else one.id, github.finding_text(one))
        for one in found
    ]
    noted += _about_files(ranks)
    name = ranks_summary.named(sources) or "ranks"
    return github.lines(noted, f"{name}: {plural(len(ranks.rows), 'rank')}; {_said(found)}")


def _said(found: Sequence[finding_texts.FindingText]) -> str:
    return f"findings: {finding_texts.findings_aside(found)}"


def _about_files(ranks: Ranks) -> Iterator[Annotation]:
    """Damage and files that were not read are warnings: the report lacks them."""
    for notice in ranks_summary.notices(ranks):
        yield "warning" if notice.lossy else "note", notice.code, notice.message
    for one in ranks.unread:
        yield "warning", "not read", ranks_summary.unread_text(one)
