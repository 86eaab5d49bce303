"""A comparison for a terminal: environments first, then what moved, what changed and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import diff_changes, diff_environment, diff_findings, diff_headline, diff_scopes
from tracehunch.report.diff_words import TOP, scope_name
from tracehunch.report.finding_texts import SEVERITY_STYLE, cannot_tell_text
from tracehunch.report.layout import Column, Line, Span, Style, View, draw, heading, paragraph, table
from tracehunch.units import cells, elide, plural, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Diff
    from tracehunch.report.diff_changes import ChangeText
    from tracehunch.report.diff_scopes import ScopeText

_NARROW: Final = 76  # columns below which counts stand under a scope's row
_WIDE: Final = 110  # columns from which on there is room for wall time beside GPU time
_NAME: Final = 26  # columns that a scope's name may take before counts give way
_UNTOLD: Final = 4
_FINDINGS: Final = 8


def render(
    diff: Diff,
    *,
    view: View | None = None,
    sources: Sequence[str] = (),
    top: int = TOP,
    all_scopes: bool = False,
) -> str:
    """Return the report. ``sources`` are what the user named the traces by; their labels if empty."""
    view = view or View()
    return draw(report_lines(diff, view, sources=sources, top=top, all_scopes=all_scopes), view)


def report_lines(
    diff: Diff, view: View, *, sources: Sequence[str] = (), top: int = TOP, all_scopes: bool = False
) -> list[Line]:
    """Return the lines of the report."""
    sources = sources or [look.facts.tree.trace.label for look in (diff.before, diff.after)]
    lines = _head(diff, view, sources)
    lines += _remarks("Warnings", diff_environment.warnings(diff), view)
    for text, why in diff_headline.headline(diff) if diff.environment.same_kind else []:
        lines += [(), *paragraph(text, view, style="bold")]
        lines += [line for reason in why for line in paragraph(reason, view, indent=2)]
    lines += _remarks("Notes", diff_environment.notes(diff), view)
    lines += _scopes(diff, view, all_scopes=all_scopes)
    lines += _changes(diff, view, top)
    lines += _findings(diff, view)
    lines += _untold(diff, view)
    command = diff_findings.next_command(diff, sources)
    return [*lines, (), (Span("Next: ", "dim"), Span(command, "bold"))]


def _head(diff: Diff, view: View, sources: Sequence[str]) -> list[Line]:
    lines: list[Line] = []
    for label, look, source in zip(("before", "after"), (diff.before, diff.after), sources, strict=True):
        text = diff_environment.source_text(look, source)
        lines += paragraph(text, view, first=(Span(f"{label:<8}", "bold"),), indent=10)
    for label, text in diff_environment.environment_lines(diff):
        style: Style = "yellow" if label == "differs" else ""
        lines += paragraph(text, view, first=(Span(f"  {label:<10}", "dim"),), indent=12, style=style)
    return lines


def _remarks(title: str, found: Sequence[str], view: View) -> list[Line]:
    lines: list[Line] = heading(title) if found else []
    mark = Span("  ! ", "yellow")
    for text in found:
        # where no person watches, one remark is one line, for grep
        lines += paragraph(text, view, first=(mark,)) if view.interactive else [(mark, text)]
    return lines


def _scopes(diff: Diff, view: View, *, all_scopes: bool) -> list[Line]:
    rows, folded = diff_scopes.scope_texts(diff, all_scopes=all_scopes)
    if not rows:
        return []
    columns, left_out = _scope_columns(diff, rows, view)
    cells = [[getattr(row, name) for _, name in columns] for row in rows]
    drawn = table([column for column, _ in columns], cells, view)
    lines = [*heading("Scopes", "per call (median), before -> after"), drawn[0]]
    for row, line in zip(rows, drawn[1:], strict=True):
        lines.append(line)
        counts = ", ".join(f"{name} {value}" for name in left_out if (value := getattr(row, name)))
        wall = "" if view.width >= _WIDE or not row.wall else f"wall {row.wall}: {row.wall_change}"
        for remark in filter(None, (counts, wall, *row.remarks)):
            lines += paragraph(remark, view, indent=4, style="dim")
    for text in (folded, *diff_scopes.unmatched(diff)):
        lines += paragraph(text, view, indent=2, style="dim") if text else []
    return lines


def _scope_columns(
    diff: Diff, rows: Sequence[ScopeText], view: View
) -> tuple[list[tuple[Column, str]], list[str]]:
    """Return columns with the field of ``ScopeText`` that each holds, and the fields without room."""
    on_gpu, wide = all(diff.environment.on_gpu), view.width >= _WIDE
    copied = on_gpu and (wide or any(" -> " in row.copies for row in rows))
    counts = ["calls", *(["kernels"] if on_gpu else []), *(["copies"] if copied else [])]
    longest = min(max(cells(row.name) for row in rows), _NAME)
    shown = counts if view.width >= _NARROW else []
    while True:
        columns = [
            (Column("scope", "left", cut="middle"), "name"),
            *((Column(name), name) for name in shown),
            (Column("GPU time" if on_gpu else "CPU time"), "time"),
            (Column("change"), "change"),
            *([(Column("wall"), "wall"), (Column("change"), "wall_change")] if wide else []),
        ]
        room = view.width - sum(_width(column, name, rows) for column, name in columns[1:])
        if room >= longest or not shown:
            return columns, counts[len(shown) :]
        shown = shown[:-1]


def _width(column: Column, name: str, rows: Sequence[ScopeText]) -> int:
    """Columns of the screen that a column takes, the gap before it included."""
    return 2 + max(cells(column.heading), *(cells(getattr(row, name)) for row in rows))


def _changes(diff: Diff, view: View, top: int) -> list[Line]:
    found = diff_changes.change_list(diff, top)
    if not found.shown and not found.rest:
        return []
    lines = heading("Changes", "per call, by time at stake")
    for change in found.shown:
        lines += _change(change, view)
    if found.rest:
        lines += [(), *paragraph(found.rest, view, indent=2, style="dim")]
    for scope in diff.scopes:
        if text := diff_changes.host_text(scope):
            lines += [(), *paragraph(f"on the host in {scope_name(scope)}: {text}", view, indent=2)]
            break  # the scopes around it spend the same time
    return lines


def _change(change: ChangeText, view: View) -> list[Line]:
    style: Style = "red" if change.delta.startswith("+") else "green"
    head: Line = ("  ", Span(f"{change.delta:>9}", style), "  ", Span(change.kind, "bold"), "  ")
    room = view.width - len(f"  {change.delta:>9}  {change.kind}  ")
    lines: list[Line] = [(), (*head, elide(change.where, max(room, 20)))]
    if change.scope:
        lines += paragraph(f"in {change.scope}", view, indent=4, style="dim")
    for text in change.lines:
        lines += paragraph(text, view, indent=4)
    for text in change.causes:
        lines += paragraph(text, view, first=(Span("    why ", "dim"),), indent=8)
    lines += paragraph(change.source, view, indent=4) if change.source else []
    return lines + (paragraph(change.evidence, view, indent=4, style="dim") if change.evidence else [])


def _findings(diff: Diff, view: View) -> list[Line]:
    if not diff.environment.same_kind:
        return []
    rows = diff_findings.finding_lines(diff)
    lines: list[Line] = heading("Findings", diff_findings.findings_aside(diff))
    for what, finding, how in rows[:_FINDINGS]:
        stake = f"  {time_us(finding.time_at_stake_us)} a call at stake" if finding.time_at_stake_us else ""
        where = elide(printable(finding.scope), 30)
        severity = Span(finding.severity, SEVERITY_STYLE[finding.severity])
        lines.append(("  ", f"{what:<5} ", severity, "  ", Span(finding.id, "bold"), f" in {where}"))
        if aside := "; ".join(filter(None, (how, stake.strip()))):
            lines += paragraph(aside, view, indent=6, style="dim")
        lines += paragraph(printable(finding.summary), view, indent=6)
        if what != "gone" and finding.severity != "note":
            lines += paragraph(printable(finding.fix), view, first=(Span("      fix ", "dim"),), indent=10)
    if len(rows) > _FINDINGS:
        lines += paragraph(f"{len(rows) - _FINDINGS} more in --format json", view, indent=2, style="dim")
    folded = diff_findings.folded_notes(diff)
    return lines + (paragraph(folded, view, indent=2, style="dim") if folded else [])


def _untold(diff: Diff, view: View) -> list[Line]:
    lines: list[Line] = [()] if diff.cannot_tell else []
    for unknown in diff.cannot_tell[:_UNTOLD]:
        first = ("  ", Span("cannot tell", "bold"), "  ")
        lines += paragraph(cannot_tell_text(unknown), view, first=first, indent=4)
    more = len(diff.cannot_tell) - _UNTOLD
    return lines + (
        paragraph(f"{plural(more, 'more')} in --format json", view, indent=2, style="dim") if more > 0 else []
    )
