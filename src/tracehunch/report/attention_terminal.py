"""The attention series for a terminal: 80 columns, with or without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import attention_glance as glance
from tracehunch.report import attention_surprises as unexpected
from tracehunch.report.attention_footnotes import footnotes
from tracehunch.report.attention_kernels import fused_kernels
from tracehunch.report.layout import Column, Line, Span, Style, View, draw, heading, paragraph, table, wrap
from tracehunch.units import cells, printable, shorten, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.attention.outcome import Device, Series
    from tracehunch.attention.workload import Workload
    from tracehunch.report.attention_glance import Row
    from tracehunch.report.attention_surprises import Ranked
    from tracehunch.verdict import Finding

_WIDE_ENOUGH: Final = 78
"""Columns; below, the CPU time of what ran on a GPU gives way."""

_SEVERITY_STYLES: Final[dict[str, Style]] = {"error": "bold red", "warning": "bold yellow", "note": "cyan"}


def render(series: Series, *, view: View | None = None, next_command: str = "") -> str:
    """Headline, tables, surprises by time at stake, what else was seen, kernel names, what to type next."""
    view = view or View()
    lines = list(_headline(series, view))
    for device, workload in glance.groups(series):
        lines += _group(series, device, workload, view)
    for section in (_not_run, _surprises, _others, _cannot_tell, _kernel_names, _footnotes):
        lines += section(series, view)
    if next_command:
        lines += [(), (Span("Next: ", "dim"), Span(next_command, "bold"))]
    return draw(lines, view)


def _headline(series: Series, view: View) -> Iterator[Line]:
    yield from paragraph(glance.headline(series), view, style="bold")
    if series.interrupted:
        yield from paragraph(glance.interrupted_text(series), view, style="bold yellow")


def _group(series: Series, device: Device, workload: Workload, view: View) -> Iterator[Line]:
    rows = glance.group_rows(series, device, workload)
    on_gpu = device.kind == "cuda"
    yield from heading("Recorded" if device.recorded else "At a glance", printable(str(workload)))
    yield from paragraph(glance.group_text(series, device, workload), view, indent=2, style="dim")
    yield ()
    columns = [*(_GPU_COLUMNS if on_gpu else _CPU_COLUMNS)]
    cells_of = [_cells(row, on_gpu=on_gpu) for row in rows]
    if on_gpu and view.width < _WIDE_ENOUGH:
        columns, cells_of = columns[:-2] + columns[-1:], [one[:-2] + one[-1:] for one in cells_of]
    drawn = table(columns, cells_of, view)
    yield drawn[0]
    for line, row in zip(drawn[1:], rows, strict=True):
        yield line
        yield from paragraph(row.changed, view, indent=4, style="dim")
        mark = Span("! ", "bold yellow") if row.surprising else Span("▸ ", "green")
        yield from paragraph(row.revealed, view, first=("    ", mark))
        if row.spread:
            yield from paragraph(row.spread, view, indent=4, style="dim")


_GPU_COLUMNS: Final = (
    Column("variant", "left"),
    Column("kernels"),
    Column("memsets"),
    Column("GPU time"),
    Column("vs best"),
    Column("CPU time"),
    Column("backend", "left"),
)
_CPU_COLUMNS: Final = (
    Column("variant", "left"),
    Column("leaf ops"),
    Column("CPU time"),
    Column("vs best"),
    Column("backend", "left"),
)


def _cells(row: Row, *, on_gpu: bool) -> list[Span | str]:
    name = Span(row.name, "bold")
    counts = f"{row.guessed} → {row.seen}"
    if on_gpu:
        return [name, counts, row.memsets, row.gpu_time, row.times_best, row.cpu_time, row.backend]
    return [name, counts, row.cpu_time, row.times_best, row.backend]


def _not_run(series: Series, view: View) -> Iterator[Line]:
    told = unexpected.refusals(series)
    if told:
        yield from heading(unexpected.reasons_title(series))
    for names, reason in told:
        yield from _hanging(("  ", Span(names, "bold"), ": "), reason, view, indent=4)


def _surprises(series: Series, view: View) -> Iterator[Line]:
    ranked = unexpected.surprises(series)
    if ranked:
        yield from heading("Surprises", "most time at stake first")
    told: set[tuple[str, str]] = set()
    for number, one in enumerate(ranked, start=1):
        yield from _surprise(number, one, told, view)


def _surprise(number: int, one: Ranked, told: set[tuple[str, str]], view: View) -> Iterator[Line]:
    name, severity = one.outcome.variant.name, one.surprise.severity
    first = (f"{number:3}  ", Span(severity, _SEVERITY_STYLES[severity]), "  ", Span(name, "bold"), ": ")
    yield from _hanging(first, unexpected.surprise_text(one), view, indent=5)
    yield from paragraph(unexpected.why_text(one), view, indent=5, style="dim")
    for finding in one.findings:
        if (name, finding.id) not in told:
            told.add((name, finding.id))
            yield from _finding(finding, view)


def _finding(finding: Finding, view: View) -> Iterator[Line]:
    """Summary, cause, fix and evidence, each a wrapped paragraph under its word."""
    yield from _hanging(
        ("     ", Span(f"{finding.id}: ", "bold")), printable(finding.summary), view, indent=7
    )
    for word, said in unexpected.finding_parts(finding):
        style: Style = "dim" if word == "evidence" else ""
        yield from paragraph(said, view, first=(Span(f"       {word:<9} ", "dim"),), indent=17, style=style)


def _others(series: Series, view: View) -> Iterator[Line]:
    left = unexpected.others(series)
    if left:
        yield from heading("Also seen")
    for names, finding in left:
        severity = Span(finding.severity, _SEVERITY_STYLES[finding.severity])
        stake = f"  {time_us(finding.time_at_stake_us)} at stake" if finding.time_at_stake_us else ""
        yield ("  ", severity, "  ", Span(names, "bold"), stake)
        yield from _finding(finding, view)


def _cannot_tell(series: Series, view: View) -> Iterator[Line]:
    unknown = unexpected.cannot_tell(series)
    if unknown:
        yield from heading("Cannot tell")
    for outcome, said in unknown:
        yield from _hanging(("  ", Span(outcome.variant.name, "bold"), ": "), said, view, indent=4)


def _kernel_names(series: Series, view: View) -> Iterator[Line]:
    lines = fused_kernels(series)
    if lines:
        yield from heading("What the kernel names say", "of forwards of one or two kernels")
    for names, use, said in lines:
        name = shorten(printable(use.name), view.width - len(names) - 4)
        yield ("  ", Span(names, "bold"), "  ", Span(name, "dim"))
        yield from paragraph(said, view, indent=4)


def _footnotes(series: Series, view: View) -> Iterator[Line]:
    for number, note in enumerate(footnotes(series)):
        if number == 0:
            yield ()
        yield from paragraph(note, view, style="dim")


def _hanging(first: tuple[Span | str, ...], text: str, view: View, *, indent: int) -> Iterator[Line]:
    """Wrap a paragraph that starts after ``first`` and goes on at ``indent``, left of where it started."""
    lead = sum(cells(span if isinstance(span, str) else span.text) for span in first)
    filler = "." * max(lead - indent - 1, 1)  # holds the place of what stands before the text
    wrapped = wrap(f"{filler} {text}", max(view.width - indent, 20))
    yield (*first, wrapped[0][len(filler) + 1 :])
    for more in wrapped[1:]:
        yield (" " * indent, more)
