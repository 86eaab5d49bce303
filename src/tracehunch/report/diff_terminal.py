"""A comparison for a terminal: environments first, then what moved, what changed and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import diff_texts, diff_words
from tracehunch.report.finding_texts import SEVERITY_STYLE, cannot_tell_text
from tracehunch.report.layout import Column, Line, Span, Style, View, draw, heading, paragraph, table
from tracehunch.units import elide, plural, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Diff
    from tracehunch.report.diff_texts import ScopeText
    from tracehunch.report.diff_words import ChangeText

_NARROW: Final = 76  # columns below which counts stand under a scope's row
_WIDE: Final = 110  # columns from which on there is room for wall time beside GPU time
_UNTOLD: Final = 4
_FINDINGS: Final = 8


def render(
    diff: Diff,
    *,
    view: View | None = None,
    sources: Sequence[str] = (),
    top: int = diff_words.TOP,
    all_scopes: bool = False,
) -> str:
    """Return the report. ``sources`` are what the user named the traces by; their labels if empty."""
    view = view or View()
    sources = sources or [look.facts.tree.trace.label for look in (diff.before, diff.after)]
    lines = _head(diff, view, sources)
    lines += _warnings(diff, view)
    for text in diff_words.headline(diff) if diff.environment.same_kind else []:
        lines += [(), *paragraph(text, view, style="bold")]
    lines += _scopes(diff, view, all_scopes=all_scopes)
    lines += _changes(diff, view, top)
    lines += _findings(diff, view)
    lines += _untold(diff, view)
    command = diff_texts.next_command(diff, sources)
    return draw([*lines, (), (Span("Next: ", "dim"), Span(command, "bold"))], view)


def _head(diff: Diff, view: View, sources: Sequence[str]) -> list[Line]:
    lines: list[Line] = []
    for label, look, source in zip(("before", "after"), (diff.before, diff.after), sources, strict=True):
        text = diff_texts.source_text(look, source)
        lines += paragraph(text, view, first=(Span(f"{label:<8}", "bold"),), indent=10)
    for label, text in diff_texts.environment_lines(diff):
        style: Style = "yellow" if label == "differs" else ""
        lines += paragraph(text, view, first=(Span(f"  {label:<10}", "dim"),), indent=12, style=style)
    return lines


def _warnings(diff: Diff, view: View) -> list[Line]:
    found = diff_texts.warnings(diff)
    if not found:
        return []
    serious = diff.environment.deciding or any(not diff_texts.is_note(diff, text) for text in found)
    lines = heading("Warnings" if serious else "Notes")
    mark = Span("  ! ", "yellow")
    for text in found:
        # where no person watches, one warning is one line, for grep
        lines += paragraph(text, view, first=(mark,)) if view.interactive else [(mark, text)]
    return lines


def _scopes(diff: Diff, view: View, *, all_scopes: bool) -> list[Line]:
    rows, folded = diff_texts.scope_texts(diff, all_scopes=all_scopes)
    if not rows:
        return []
    wide = view.width >= _WIDE
    columns = _scope_columns(diff, rows, view)
    lines = heading("Scopes", "per call (median), before -> after")
    drawn = table(
        [column for column, _ in columns], [[getattr(row, name) for _, name in columns] for row in rows], view
    )
    lines.append(drawn[0])
    for row, line in zip(rows, drawn[1:], strict=True):
        lines.append(line)
        counts = "" if view.width >= _NARROW else f"calls {row.calls}, kernels {row.kernels}"
        wall = "" if wide or not row.wall else f"wall {row.wall}: {row.wall_change}"
        for remark in filter(None, (counts, wall, *row.remarks)):
            lines += paragraph(remark, view, indent=4, style="dim")
    for text in (folded, *diff_texts.unmatched(diff)):
        lines += paragraph(text, view, indent=2, style="dim") if text else []
    return lines


def _scope_columns(diff: Diff, rows: Sequence[ScopeText], view: View) -> list[tuple[Column, str]]:
    """Return what is shown of scopes, and the field of ``ScopeText`` that holds it."""
    on_gpu = all(diff.environment.on_gpu)
    roomy, wide = view.width >= _NARROW, view.width >= _WIDE
    copied = wide or any(" -> " in row.copies for row in rows)
    columns = (
        (True, Column("scope", "left", cut="middle"), "name"),
        (roomy, Column("calls"), "calls"),
        (roomy and on_gpu, Column("kernels"), "kernels"),
        (roomy and on_gpu and copied, Column("copies"), "copies"),
        (True, Column("GPU time" if on_gpu else "CPU time"), "time"),
        (True, Column("change"), "change"),
        (wide, Column("wall"), "wall"),
        (wide, Column("change"), "wall_change"),
    )
    return [(column, name) for shown, column, name in columns if shown]


def _changes(diff: Diff, view: View, top: int) -> list[Line]:
    found = diff_words.change_list(diff, top)
    if not found.shown and not found.rest:
        return []
    lines = heading("Changes", "per call, by time at stake")
    for change in found.shown:
        lines += _change(change, view)
    if found.rest:
        lines += [(), *paragraph(found.rest, view, indent=2, style="dim")]
    for scope in diff.scopes:
        if text := diff_words.host_text(scope):
            name = printable(scope.pair.name, 60)
            lines += [(), *paragraph(f"on the host in {name}: {text}", view, indent=2)]
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
    return lines + (paragraph(change.evidence, view, indent=4, style="dim") if change.evidence else [])


def _findings(diff: Diff, view: View) -> list[Line]:
    if not diff.environment.same_kind:
        return []
    rows = diff_texts.finding_lines(diff)
    lines: list[Line] = heading("Findings", diff_texts.findings_aside(diff))
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
    folded = diff_texts.folded_notes(diff)
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
