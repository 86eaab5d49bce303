"""A Look for a terminal: what was recorded, what is wrong with it and costs most, then the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import finding_texts, kernel_rows, scope_rows, summary
from tracehunch.report.layout import Column, Line, Span, Style, View, draw, heading, paragraph, table
from tracehunch.report.summary import Selection
from tracehunch.report.verdict_text import verdict_lines
from tracehunch.units import elide, plural, printable, shorten

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.report.finding_texts import FindingText
    from tracehunch.report.kernel_rows import KernelRow, KernelTable, OpTable
    from tracehunch.report.scope_rows import ScopeRow
    from tracehunch.verdict import Look

_WIDE: Final = 100  # columns from which on there is room for the CPU time
_NARROW: Final = 76
_VERY_WIDE: Final = 150  # for a kernel's name beside what it is
_KERNEL_TABLES: Final = 3  # with more scopes selected, only the first so many
_NOTES_IN_FULL: Final = 3  # of more notes, only what they say; --all and the other formats tell the rest
_OP_ROOM: Final = 60  # columns that the rest of a kernel's row takes
_SCOPE_WIDTH: Final = 40  # columns of a scope's name in a heading


def render(
    look: Look,
    *,
    view: View | None = None,
    selection: Selection | None = None,
    source: str = "",
    numbers: bool = True,
) -> str:
    """Return the report. ``source`` is what the user named the trace by; its own label if empty.

    Without ``numbers`` it ends after the findings: no tables of scopes and kernels.
    """
    view = view or View()
    return draw(report_lines(look, view, selection, source=source, numbers=numbers), view)


def report_lines(
    look: Look, view: View, selection: Selection | None = None, *, source: str = "", numbers: bool = True
) -> list[Line]:
    """Return the lines of the report, as ``render`` draws them."""
    selection = selection or Selection()
    source = source or look.facts.tree.trace.label
    lines: list[Line] = [(Span(printable(source), "bold"),)]
    lines += _recorded(look, view)
    lines += _warnings(look, view)
    lines += verdict_lines(look.verdict, view)
    lines += _findings(look, view, selection)
    if numbers:
        lines += _numbers(look, view, selection)
    return [*lines, *_ending(look, source, selection)]


def _numbers(look: Look, view: View, selection: Selection) -> list[Line]:
    lines = _scopes(look, view, selection)
    kernels = kernel_rows.kernel_tables(look, selection)
    for one in kernels[:_KERNEL_TABLES]:
        lines += _kernels(one, view)
    if len(kernels) > _KERNEL_TABLES:
        lines += [
            (),
            *_below(
                f"the kernels of {len(kernels) - _KERNEL_TABLES} more scopes are in --format json", view, 2
            ),
        ]
    for ops in kernel_rows.op_tables(look, selection)[:_KERNEL_TABLES]:
        lines += _ops(ops, view)
    return lines


def _recorded(look: Look, view: View) -> list[Line]:
    lines: list[Line] = []
    for label, text in summary.recorded_on(look):
        lines += paragraph(text, view, first=(Span(f"  {label:<10}", "dim"),), indent=12)
    return lines


def _warnings(look: Look, view: View) -> list[Line]:
    notices = summary.notices(look)
    if not notices:
        return []
    lines = heading("Warnings", "about the file")
    for notice in notices:
        mark = Span("  ! ", "bold yellow" if notice.lossy else "yellow")
        text = f"{notice.code}: {notice.message}"
        # where no person watches, one warning is one line, for grep
        lines += paragraph(text, view, first=(mark,)) if view.interactive else [(mark, text)]
    return lines


def _findings(look: Look, view: View, selection: Selection) -> list[Line]:
    found = finding_texts.findings(look, selection)
    aside = finding_texts.findings_aside(found)
    lines: list[Line] = [(), *paragraph(aside, view, first=(Span("Findings", "bold"), "  "), style="dim")]
    chosen, more = finding_texts.shown(found, selection)
    loud = [one for one in chosen if one.severity != "note"]
    notes = [one for one in chosen if one.severity == "note"]
    in_full = len(notes) if selection.all_findings else _NOTES_IN_FULL
    for one in loud + notes[:in_full]:
        lines += finding_lines(one, view)
    for one in notes[in_full:]:
        lines += [(), *_finding_head(one, view), *paragraph(one.summary, view, indent=4)]
    lines += _left_out(len(notes[in_full:]), more, view)
    unknown = finding_texts.untold(look, selection)
    if unknown:
        lines += [()] if found else []
    for text in unknown:
        lines += paragraph(text, view, first=("  ", Span("cannot tell", "bold"), "  "), indent=4, style="dim")
    return lines


def _left_out(n_brief: int, more: str, view: View) -> list[Line]:
    """Say what --all would add: the causes and fixes of notes that are told in brief, and more findings."""
    brief = f"Left out: causes and fixes of {'a note' if n_brief == 1 else plural(n_brief, 'note')}; --all"
    if n_brief and more:
        return [(), *paragraph(f"{brief.removesuffix('; --all')}, and {more}", view, indent=2, style="dim")]
    if n_brief:
        return [(), *paragraph(f"{brief} shows them", view, indent=2, style="dim")]
    return [(), (Span(f"  {more}", "dim"),)] if more else []


def finding_lines(one: FindingText, view: View) -> list[Line]:
    """Return a finding in full: its head, what was seen, cause, fix and evidence."""
    lines: list[Line] = [(), *_finding_head(one, view), *paragraph(one.summary, view, indent=4)]
    for label, text in (("cause", one.cause), ("fix", one.fix), ("evidence", one.evidence)):
        if text:
            style: Style = "dim" if label == "evidence" else ""
            lines += paragraph(text, view, first=(Span(f"    {label:<8}", "dim"),), indent=13, style=style)
    return lines


def _finding_head(one: FindingText, view: View) -> list[Line]:
    longest = min(_SCOPE_WIDTH, view.width - len(f"  {one.severity}  {one.id} in "))
    where = f" in {elide(one.scope, longest)}" if one.scope else ""
    severity = Span(one.severity, finding_texts.SEVERITY_STYLE[one.severity])
    head: Line = ("  ", severity, "  ", Span(one.id, "bold"), where)
    room = view.width - len(f"  {one.severity}  {one.id}{where}  ")
    if not one.stake or len(one.stake) <= room:
        return [(*head, f"  {one.stake}" if one.stake else "")]
    return [head, ("    ", one.stake)]


def _scopes(look: Look, view: View, selection: Selection) -> list[Line]:
    shown, folded = scope_rows.shown_scopes(look, selection)
    rows = scope_rows.scope_rows(look, shown)
    usual = scope_rows.usual_traits(rows)
    lines = heading("Scopes", "per call (median)")
    lines += _below(
        usual and f"{usual}{'' if len({row.traits for row in rows}) == 1 else ', unless said'}", view, 2
    )
    columns = _scope_columns(view, gpu=summary.has_gpu_work(look))
    drawn = table(
        [column for column, _ in columns], [[cell(row) for _, cell in columns] for row in rows], view
    )
    lines.append(drawn[0])
    for row, line in zip(rows, drawn[1:], strict=True):
        unusual = "" if row.traits == usual else row.traits or "data type not known"
        spread = f"calls differ: {row.spread}" if row.spread else ""
        indent = 4 + len(row.name) - len(row.name.lstrip())
        waits = row.kind == "module" and row.limit.startswith("overhead")  # of so many idle says enough
        limit = "" if waits else row.limit
        lines += [line, *_below("; ".join(filter(None, (unusual, limit, spread))), view, indent)]
    return [*lines, *_below(folded, view, 2)]


def _scope_columns(view: View, *, gpu: bool) -> list[tuple[Column, Callable[[ScopeRow], str]]]:
    """Return what is shown of scopes: what there is, as far as there is room."""
    wide, narrow = view.width >= _WIDE, view.width < _NARROW
    columns: tuple[tuple[bool, Column, Callable[[ScopeRow], str]], ...] = (
        (True, Column("scope", "left", cut="middle"), lambda row: row.name),
        (True, Column("calls"), lambda row: row.calls),
        (not gpu, Column("leaf ops"), lambda row: row.leaf_ops),
        (gpu, Column("kernels"), lambda row: row.kernels),
        (gpu, Column("copies"), lambda row: row.copies),
        (gpu and not narrow, Column("memsets"), lambda row: row.memsets),
        (gpu, Column("GPU time"), lambda row: row.gpu_time),
        (not gpu or wide, Column("CPU time"), lambda row: row.cpu_time),
        (not gpu or not narrow, Column("wall"), lambda row: row.wall_time),
        (gpu, Column("GPU idle" if wide else "idle"), lambda row: row.gpu_idle),
    )
    return [(column, cell) for shown, column, cell in columns if shown]


def _below(text: str, view: View, indent: int = 4) -> list[Line]:
    return paragraph(text, view, indent=indent, style="dim") if text else []


def _kernels(one: KernelTable, view: View) -> list[Line]:
    per = f"per call, {plural(one.calls, 'call')}" if one.calls > 1 else "one call"
    lines = heading(f"Kernels in {elide(one.scope, _SCOPE_WIDTH)}", f"by GPU time, {per}")
    wide = view.width >= _VERY_WIDE
    drawn = table(
        _WIDE_KERNEL_COLUMNS if wide else _KERNEL_COLUMNS,
        [_kernel_cells(row, view) for row in one.rows],
        view,
    )
    lines.append(drawn[0])
    for row, line in zip(one.rows, drawn[1:], strict=True):
        lines.append(line)
        if not wide:
            occupancy = f"occupancy {row.occupancy}" if row.occupancy else ""
            about = ", ".join(filter(None, (row.limit, occupancy, row.name)))
            lines.append((Span(shorten(f"    {about}", view.width), "dim"),))
    below = (one.rest, one.unclassified, one.peaks)
    return lines + [line for text in below for line in _below(text, view, indent=2)]


_KERNEL_COLUMNS: Final = (
    Column("share"),
    Column("time"),
    Column("runs"),
    Column("launched by", "left", 40),
    Column("what it is", "left", 44),
)
_WIDE_KERNEL_COLUMNS: Final = (
    *_KERNEL_COLUMNS,
    Column("limit", "left"),
    Column("occupancy"),
    Column("name", "left"),
)


def _kernel_cells(row: KernelRow, view: View) -> list[Span | str]:
    wide = view.width >= _VERY_WIDE
    room = max(view.width - _OP_ROOM, 20)
    op = row.op if len(row.op) <= room else elide(row.op.removeprefix("aten::"), room)
    cells: list[Span | str] = [row.share, row.time, row.per_call, op, row.what]
    return [*cells, row.limit, row.occupancy, Span(row.name, "dim")] if wide else cells


def _ops(one: OpTable, view: View) -> list[Line]:
    per = f", per call, {plural(one.calls, 'call')}" if one.calls > 1 else ""
    columns = [Column("share"), Column("self"), Column("total"), Column("calls"), Column("op", "left")]
    cells = [[row.share, row.self_time, row.total_time, row.calls, row.op] for row in one.rows]
    title = heading(f"Ops in {elide(one.scope, _SCOPE_WIDTH)}", f"by CPU time in themselves{per}")
    return [*title, *table(columns, cells, view), *_below(one.rest, view, 2)]


def _ending(look: Look, source: str, selection: Selection) -> list[Line]:
    return [(), (Span("Next: ", "dim"), Span(summary.next_command(look, source, selection), "bold"))]
