"""A comparison as Markdown that GitHub renders: for a pull request's comment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import diff_changes, diff_environment, diff_findings, diff_headline, diff_scopes
from tracehunch.report.cut import for_comment
from tracehunch.report.diff_words import TOP
from tracehunch.report.finding_texts import cannot_tell_text
from tracehunch.report.markdown import code, marker, table, text
from tracehunch.units import time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Diff
    from tracehunch.report.diff_changes import ChangeText


def render(diff: Diff, *, sources: Sequence[str] = (), top: int = TOP, all_scopes: bool = False) -> str:
    """Return the report, ending in a newline: all of it, or what fits into a comment on GitHub."""
    sources = sources or [look.facts.tree.trace.label for look in (diff.before, diff.after)]
    blocks = [marker("diff"), f"## tracehunch diff {code(sources[0])} {code(sources[1])}"]
    if diff.environment.same_kind:
        for line, why in diff_headline.headline(diff):
            blocks.append(
                "\n".join([f"**{text(line)}**", "", *(f"- {text(reason)}" for reason in why)]).rstrip()
            )
    blocks.append(_head(diff, sources))
    blocks += _bullets("Warnings", [text(one) for one in diff_environment.warnings(diff)])
    blocks += _bullets("Notes", [text(one) for one in diff_environment.notes(diff)])
    blocks += _scopes(diff, all_scopes=all_scopes)
    blocks += _changes(diff, top)
    blocks += _findings(diff)
    blocks += _bullets("Cannot tell", [text(cannot_tell_text(one)) for one in diff.cannot_tell])
    blocks.append(f"Next: {code(diff_findings.next_command(diff, sources))}")
    return for_comment("\n\n".join(blocks) + "\n")


def _head(diff: Diff, sources: Sequence[str]) -> str:
    looks = zip(("before", "after"), (diff.before, diff.after), sources, strict=True)
    rows = [(label, text(diff_environment.source_text(look, source))) for label, look, source in looks]
    rows += [(label, text(said)) for label, said in diff_environment.environment_lines(diff)]
    return table((("<", None), ("<", None)), rows)


def _bullets(title: str, lines: Sequence[str]) -> list[str]:
    return [f"### {title}", "\n".join(f"- {line}" for line in lines)] if lines else []


def _scopes(diff: Diff, *, all_scopes: bool) -> list[str]:
    rows, folded = diff_scopes.scope_texts(diff, all_scopes=all_scopes)
    if not rows:
        return []
    on_gpu = all(diff.environment.on_gpu)
    heads = ["<scope", "calls", *(["kernels", "copies", "GPU time"] if on_gpu else ["leaf ops", "CPU time"])]
    heads += ["change", "wall", "change", "<what else"]
    cells = [
        [
            code(row.name), row.calls, row.kernels, *([row.copies] if on_gpu else []), row.time,
            text(row.change), row.wall, text(row.wall_change), text("; ".join(row.remarks)),
        ]
        for row in rows
    ]  # fmt: skip
    remarks = [text(one) for one in (folded, *diff_scopes.unmatched(diff)) if one]
    return ["### Scopes, per call", table([(head, None) for head in heads], cells), *remarks]


def _changes(diff: Diff, top: int) -> list[str]:
    found = diff_changes.change_list(diff, top)
    blocks = [_change(change) for change in found.shown]
    blocks += [text(found.rest)] if found.rest else []
    host = next((words for scope in diff.scopes if (words := diff_changes.host_text(scope))), "")
    blocks += [f"On the host: {text(host)}"] if host else []
    return ["### Changes, per call, by time at stake", *blocks] if blocks else []


def _change(change: ChangeText) -> str:
    scope = f" in {code(change.scope)}" if change.scope else ""
    lines = [f"**{text(change.delta)}** {text(change.kind)} {code(change.where)}{scope}", ""]
    lines += [f"- {text(line)}" for line in change.lines]
    lines += [f"- why: {text(cause)}" for cause in change.causes]
    lines += [f"- {text(change.source)}"] if change.source else []
    lines += [f"- evidence: {text(change.evidence)}"] if change.evidence else []
    return "\n".join(lines)


def _findings(diff: Diff) -> list[str]:
    if not diff.environment.same_kind:
        return []
    lines = []
    for what, finding, how in diff_findings.finding_lines(diff):
        stake = f", {time_us(finding.time_at_stake_us)} a call at stake" if finding.time_at_stake_us else ""
        grown = f" ({text(how)})" if how else ""
        where = f"{code(finding.id)} in {code(finding.scope)}"
        lines.append(f"- {what}{grown}: **{finding.severity}** {where}{stake}: {text(finding.summary)}")
    folded = diff_findings.folded_notes(diff)
    blocks = [f"### Findings: {diff_findings.findings_aside(diff)}", "\n".join(lines), text(folded)]
    return [block for block in blocks if block]
