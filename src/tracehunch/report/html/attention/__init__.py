"""The attention series: at a glance with a bar for each variant, what did not run, what was unexpected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import attention_glance as glance
from tracehunch.report import attention_surprises as unexpected
from tracehunch.report.attention_footnotes import footnotes
from tracehunch.report.attention_headline import group_outcomes
from tracehunch.report.attention_kernels import fused_kernels
from tracehunch.report.html.attention.bars import bars
from tracehunch.report.html.attention.cards import finding_html, marks_of, surprise_card
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.attention.outcome import Device, Series
    from tracehunch.attention.workload import Workload
    from tracehunch.report.attention_glance import Row

_VARIANT = (Head("variant"), Head("what changed", wide=True))
_GUESSES = (
    Head("textbook", number=True, meaning="guessed from the mathematics alone"),
    Head("expert", number=True, meaning="guessed from what PyTorch does on this device and version"),
)
_GPU = (
    Head("saw", number=True, meaning="kernels+copies of a forward"),
    Head("memsets", number=True),
    Head("GPU time", number=True),
    Head("vs best", number=True),
    Head("CPU time", number=True),
)
_CPU = (
    Head("saw", number=True, meaning="leaf ops of a forward"),
    Head("CPU time", number=True),
    Head("vs best", number=True),
)
_REST = (Head("backend"), Head("what the trace revealed", wide=True))


def glance_section(series: Series) -> Section:
    """Return the tables, a picture of the times above each."""
    html = "".join(_group(series, device, workload) for device, workload in glance.groups(series))
    refused = "".join(f"<li>{code(names)}: {text(why)}</li>" for names, why in unexpected.refusals(series))
    if refused:
        html += f"<h3>{text(unexpected.reasons_title(series))}</h3><ul>{refused}</ul>"
    return Section("glance", "At a glance", html, styles=("bars",))


def _group(series: Series, device: Device, workload: Workload) -> str:
    on_gpu = device.kind == "cuda"
    heads = (*_VARIANT, *_GUESSES, *(_GPU if on_gpu else _CPU), *_REST)
    rows = [_cells(row, on_gpu=on_gpu) for row in glance.group_rows(series, device, workload)]
    title = f"{'Recorded' if device.recorded else 'Run here'}: {workload}"
    return (
        f"<h3>{text(title)}</h3><p>{text(glance.group_text(series, device, workload))}</p>"
        f"{bars(group_outcomes(series, device, workload))}"
        f"{table(heads, rows, caption=f'Attention variants, {workload}', pinned=True)}"
    )


def _cells(row: Row, *, on_gpu: bool) -> list[Cell]:
    said = f"{row.revealed}; {row.spread}" if row.spread else row.revealed
    numbers = [row.guessed, row.expert, row.seen]
    if on_gpu:
        numbers += [row.memsets, row.gpu_time, row.times_best, row.cpu_time]
    else:
        numbers += [row.cpu_time, row.times_best]
    mark = '<span class="tag warning">surprise</span> ' if row.surprising else ""
    return [
        Cell(code(row.name)),
        Cell(text(row.changed)),
        *(Cell(text(one)) for one in numbers),
        Cell(text(row.backend)),
        Cell(mark + text(said)),
    ]


def surprises_section(series: Series) -> Section | None:
    """Return what broke a guess, with the findings that explain it; None where all held."""
    ranked = unexpected.merged(series)
    if not ranked:
        return None
    told: set[tuple[str, str]] = set()
    marks = marks_of(series)
    html = "".join(surprise_card(number, one, told, marks) for number, one in enumerate(ranked, 1))
    return Section("surprises", "Surprises", html, aside=unexpected.order_text(ranked))


def others_section(series: Series) -> Section | None:
    """Return what else the checks saw, what cannot be told, what kernel names say, and the footnotes."""
    html = "".join((*_others(series), *_untold(series), *_names(series), *_notes(series)))
    return Section("others", "Also seen", html) if html else None


def _others(series: Series) -> Iterator[str]:
    marks = marks_of(series)
    for names, finding in unexpected.others(series):
        css = f"card {finding.severity}"
        told = finding_html(finding, marks)
        tag = f'<span class="tag {finding.severity}">{finding.severity}</span> '
        yield f'<article class="{css}"><h3>{tag}{code(names)}</h3>{told}</article>'


def _untold(series: Series) -> Iterator[str]:
    told = unexpected.cannot_tell(series)
    if told:
        yield f"<h3>Cannot tell: {plural(len(told), 'thing')}</h3><ul>"
        yield from (f"<li>{code(names)}: {text(said)}</li>" for names, said in told)
        yield "</ul>"


def _names(series: Series) -> Iterator[str]:
    lines = fused_kernels(series)
    if lines:
        yield "<h3>What the kernel names say</h3><ul>"
        yield from (f"<li>{code(names)} {code(use.name)}: {text(said)}</li>" for names, use, said in lines)
        yield "</ul>"


def _notes(series: Series) -> Iterator[str]:
    yield from (f'<p class="dim">{text(note)}</p>' for note in footnotes(series))
