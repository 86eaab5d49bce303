"""The attention series for a terminal: 80 columns, with or without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import attention_glance as glance
from tracehunch.report import attention_surprises as unexpected
from tracehunch.report.attention_brief import (
    brief,
    cannot_tell,
    hanging,
    labelled,
    other_head,
    surprise_head,
)
from tracehunch.report.attention_footnotes import footnotes
from tracehunch.report.attention_headline import headline, interrupted_text
from tracehunch.report.attention_kernels import fused_kernels
from tracehunch.report.layout import Column, Line, Span, View, draw, heading, paragraph, table
from tracehunch.units import cells, printable, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.attention.outcome import Device, Series
    from tracehunch.attention.workload import Workload
    from tracehunch.report.attention_glance import Row
    from tracehunch.report.attention_surprises import Ranked
    from tracehunch.verdict import Finding


def render(
    series: Series, *, view: View | None = None, next_command: str = "", everything: bool = False
) -> str:
    """Headline, tables, what did not run, the surprises in short, and what to type next.

    With ``everything`` all surprises and findings in full, the kernel names, and what the numbers rest on.
    """
    view = view or View()
    lines = list(_headline(series, view))
    for device, workload in glance.groups(series):
        lines += _group(series, device, workload, view)
    lines += _not_run(series, view)
    lines += _in_full(series, view) if everything else brief(series, view)
    if next_command:
        lines += [(), (Span("Next: ", "dim"), Span(next_command, "bold"))]
    return draw(lines, view)


def _in_full(series: Series, view: View) -> Iterator[Line]:
    for section in (_surprises, _others, cannot_tell, _kernel_names, _footnotes):
        yield from section(series, view)


def _headline(series: Series, view: View) -> Iterator[Line]:
    yield from paragraph(headline(series), view, style="bold")
    if series.interrupted:
        yield from paragraph(interrupted_text(series), view, style="bold yellow")


def _group(series: Series, device: Device, workload: Workload, view: View) -> Iterator[Line]:
    rows = glance.group_rows(series, device, workload)
    on_gpu = device.kind == "cuda"
    yield from heading("Recorded" if device.recorded else "At a glance", printable(str(workload)))
    yield from paragraph(glance.group_text(series, device, workload), view, indent=2, style="dim")
    yield ()
    columns = [*(_GPU_COLUMNS if on_gpu else _CPU_COLUMNS)]
    cells_of = [_cells(row, on_gpu=on_gpu) for row in rows]
    if on_gpu and _width(columns, cells_of) > view.width:  # memsets and the CPU time give way
        kept = [0, 1, 3, 4, 6]
        columns, cells_of = [columns[at] for at in kept], [[one[at] for at in kept] for one in cells_of]
    drawn = table(columns, cells_of, view)
    yield drawn[0]
    for line, row in zip(drawn[1:], rows, strict=True):
        yield line
        yield from paragraph(row.changed, view, indent=4, style="dim")
        mark = Span("! ", "bold yellow") if row.surprising else Span("▸ ", "green")
        yield from paragraph(row.revealed, view, first=("    ", mark))
        if row.spread:
            yield from paragraph(row.spread, view, indent=4, style="dim")


def _width(columns: list[Column], rows: list[list[Span | str]]) -> int:
    """Columns that a table takes with nothing cut."""
    texts = [[column.heading for column in columns]]
    texts += [[one if isinstance(one, str) else one.text for one in row] for row in rows]
    return sum(max(map(cells, column)) + 2 for column in zip(*texts, strict=True))


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
    if on_gpu:
        return [name, row.counts, row.memsets, row.gpu_time, row.times_best, row.cpu_time, row.backend]
    return [name, row.counts, row.cpu_time, row.times_best, row.backend]


def _not_run(series: Series, view: View) -> Iterator[Line]:
    told = unexpected.refusals(series)
    if told:
        yield from heading(unexpected.reasons_title(series))
    for names, reason in told:
        yield from hanging(("  ", Span(names, "bold"), ": "), reason, view, indent=4)


def _surprises(series: Series, view: View) -> Iterator[Line]:
    ranked = unexpected.merged(series)
    if ranked:
        yield from heading("Surprises", unexpected.order_text(ranked))
    told: set[tuple[str, str]] = set()
    for number, one in enumerate(ranked, start=1):
        yield from _surprise(number, one, told, view)


def _surprise(number: int, one: Ranked, told: set[tuple[str, str]], view: View) -> Iterator[Line]:
    yield from surprise_head(number, one, view)
    yield from paragraph(unexpected.why_text(one), view, indent=5, style="dim")
    main, parts = unexpected.main_and_parts(one)
    for finding in (*main, *parts):
        if (one.names[0], finding.id) not in told:
            told.add((one.names[0], finding.id))
            yield from _finding(finding, view, whole=finding in main)


def _finding(finding: Finding, view: View, *, whole: bool = True) -> Iterator[Line]:
    """Summary, cause, fix and evidence, each a wrapped paragraph under its word; of a part no cause."""
    yield from hanging(("     ", Span(f"{finding.id}: ", "bold")), printable(finding.summary), view, indent=7)
    for word, said in unexpected.finding_parts(finding):
        if whole or word != "cause":
            yield from labelled(word, said, view)


def _others(series: Series, view: View) -> Iterator[Line]:
    left = unexpected.others(series)
    if left:
        yield from heading("Also seen")
    for names, finding in left:
        yield other_head(names, finding)
        yield from _finding(finding, view)


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
