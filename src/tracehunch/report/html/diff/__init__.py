"""What a comparison says: changes by time at stake, scopes, findings, and what the traces are of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import diff_changes, diff_environment, diff_findings, diff_headline, diff_scopes
from tracehunch.report.finding_texts import cannot_tell_text
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.html.timeline import evidence_mark
from tracehunch.units import time_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.compare.model import Diff
    from tracehunch.report.diff_changes import ChangeText
    from tracehunch.verdict import Finding


def headline_html(diff: Diff) -> str:
    """Return what changed first of all, and why."""
    if not diff.environment.same_kind:
        return ""
    said = []
    for line, why in diff_headline.headline(diff):
        reasons = "".join(f"<li>{text(reason)}</li>" for reason in why)
        said.append(f"<p><strong>{text(line)}</strong></p>" + (f"<ul>{reasons}</ul>" if reasons else ""))
    return "".join(said)


def environments_section(diff: Diff, sources: Sequence[str]) -> Section:
    """Return what the traces are of, with warnings and notes, and what cannot be told."""
    looks = zip(("before", "after"), (diff.before, diff.after), sources, strict=True)
    rows = [(label, diff_environment.source_text(look, source)) for label, look, source in looks]
    rows += diff_environment.environment_lines(diff)
    html = f'<dl class="facts">{"".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in rows)}</dl>'
    html += _bullets("Warnings", diff_environment.warnings(diff))
    html += _bullets("Notes", diff_environment.notes(diff))
    html += _bullets("Cannot tell", [cannot_tell_text(one) for one in diff.cannot_tell])
    return Section("environment", "Environment", html)


def _bullets(title: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<h3>{title}</h3><ul>{items}</ul>" if items else ""


def scopes_section(diff: Diff, *, all_scopes: bool) -> Section | None:
    """Return the scopes beside each other, per call; None where none are compared."""
    rows, folded = diff_scopes.scope_texts(diff, all_scopes=all_scopes)
    if not rows:
        return None
    on_gpu = all(diff.environment.on_gpu)
    counted = ["kernels", "copies", "GPU time"] if on_gpu else ["leaf ops", "CPU time"]
    heads = [
        Head("scope"),
        Head("calls", number=True),
        *(Head(one, number=True) for one in (*counted, "change", "wall", "change of wall")),
        Head("what else", wide=True),
    ]
    cells = [
        [
            Cell(code(row.name)),
            *(Cell(text(one)) for one in (row.calls, row.kernels, *([row.copies] if on_gpu else []))),
            *(Cell(text(one)) for one in (row.time, row.change, row.wall, row.wall_change)),
            Cell(text("; ".join(row.remarks))),
        ]
        for row in rows
    ]
    below = "".join(
        f'<p class="dim">{text(one)}</p>' for one in (folded, *diff_scopes.unmatched(diff)) if one
    )
    return Section(
        "scopes",
        "Scopes",
        table(heads, cells, caption="Scopes, per call", pinned=True) + below,
        aside="per call",
    )


def changes_section(diff: Diff, top: int) -> Section | None:
    """Return what became slower or faster, came or went; None where nothing did."""
    found = diff_changes.change_list(diff, top)
    html = "".join(_change(at, change) for at, change in enumerate(found.shown, 1))
    html += f'<p class="dim">{text(found.rest)}</p>' if found.rest else ""
    host = next((words for scope in diff.scopes if (words := diff_changes.host_text(scope))), "")
    html += f"<p>On the host: {text(host)}</p>" if host else ""
    return Section("changes", "Changes", html, aside="per call, by time at stake") if html else None


def _change(number: int, change: ChangeText) -> str:
    scope = f" in {code(change.scope)}" if change.scope else ""
    lines = [text(line) for line in change.lines]
    lines += [f"why: {text(cause)}" for cause in change.causes]
    lines += [text(change.source)] if change.source else []
    lines += [f'<span class="dim">evidence: {text(change.evidence)}</span>'] if change.evidence else []
    items = "".join(f"<li>{line}</li>" for line in lines)
    return (
        f'<article class="card" id="c-{number}"><h3><span class="tag">{text(change.kind)}</span> '
        f'<span>{code(change.where)}{scope}</span> <span class="stake">{text(change.delta)}</span></h3>'
        f"<ul>{items}</ul></article>"
    )


def findings_section(diff: Diff, names: Sequence[str]) -> Section | None:
    """Return which findings came, went and grew; None where the traces are not of one kind, or have none.

    `names` are what the timeline shows the traces under.
    """
    if not diff.environment.same_kind:
        return None
    cards = []
    for what, finding, how in diff_findings.finding_lines(diff):
        stake = f"{time_us(finding.time_at_stake_us)} a call at stake" if finding.time_at_stake_us else ""
        grown = f" ({text(how)})" if how else ""
        css = "held" if what == "gone" else finding.severity
        cards.append(
            f'<article class="card {css}"{_mark(diff, finding, names)}><h3>'
            f'<span class="tag {css}">{text(what)}{grown}'
            f": {finding.severity}</span> <span>{code(finding.id)} in {code(finding.scope)}</span> "
            f'<span class="stake">{text(stake)}</span></h3><p>{text(finding.summary)}</p></article>'
        )
    if folded := diff_findings.folded_notes(diff):
        cards.append(f'<p class="dim">{text(folded)}</p>')
    aside = diff_findings.findings_aside(diff)
    return Section("findings", "Findings", "".join(cards), aside=aside) if cards else None


def _mark(diff: Diff, finding: Finding, names: Sequence[str]) -> str:
    for look, name in zip((diff.before, diff.after), names, strict=True):
        for at, one in enumerate(look.checked.findings):
            if one is finding:
                return evidence_mark(f"f{at}", finding.id, name)
    return ""
