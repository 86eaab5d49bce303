"""Memory traffic of unfused against fused attention: the tensors that each step reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.html.charts import chart
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.html.traffic.tensors import Step, fused, moved, unfused
from tracehunch.units import ratio, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.workload import Workload

_WIDTH: Final = 900
_LABEL: Final = 150
_VALUE: Final = 90
_ROW: Final = 34

_HEADS = (Head("step"), Head("reads"), Head("writes"), Head("bytes", number=True))


def traffic_section(workload: Workload) -> Section:
    """Return a picture of one forward by hand and one fused, to one scale, and the same as tables."""
    by_hand, one_kernel = unfused(workload), fused(workload)
    widest = max(step.n_bytes for step in (*by_hand, *one_kernel))
    least = moved(by_hand) / moved(one_kernel)
    said = (
        f"One forward of {workload}: by hand, every step reads its inputs from memory and writes its result "
        f"back, the score matrix ({size(workload.scores_bytes)}) again and again: {size(moved(by_hand))} "
        f"in all. Fused, only q, k, v and the output cross: {size(moved(one_kernel))}, {ratio(least)} less. "
        "These are counts of whole tensors; caches may serve some of the reads."
    )
    html = (
        f"<p>{text(said)}</p>"
        '<p class="dim">Blue is read, orange is written; all bars to one scale.</p>'
        f"<h3>By hand: matmul, scale, mask, softmax, matmul</h3>{_picture(by_hand, widest)}{_table(by_hand)}"
        f"<h3>Fused: one kernel</h3>{_picture(one_kernel, widest)}{_table(one_kernel)}"
    )
    return Section("traffic", "Memory traffic", html, aside="unfused against fused", styles=("bars",))


def _picture(steps: Sequence[Step], widest: int) -> str:
    scale = (_WIDTH - _LABEL - _VALUE) / widest
    rows = "".join(_row(at, step, scale) for at, step in enumerate(steps))
    label = "Bytes read and written by each step; the numbers are in the table below"
    return chart("bars", _WIDTH, _ROW * len(steps) + 2, label, rows)


def _row(at: int, step: Step, scale: float) -> str:
    top = at * _ROW + 4
    x = float(_LABEL)
    parts = [f'<text x="{_LABEL - 8}" y="{top + 16}" text-anchor="end">{text(step.op)}</text>']
    for css, tensors in (("read", step.reads), ("written", step.writes)):
        for name, n_bytes in tensors:
            wide = n_bytes * scale
            parts.append(
                f"<g><title>{text(f'{name}: {size(n_bytes)} {css}')}</title>"
                f'<rect class="{css} edge" x="{x:.1f}" y="{top}" width="{wide:.1f}" height="{_ROW - 10}"/>'
            )
            if wide > 7 * len(name) + 6:
                parts.append(f'<text x="{x + 5:.1f}" y="{top + 16}">{text(name)}</text>')
            parts.append("</g>")
            x += wide
    parts.append(f'<text x="{x + 8:.1f}" y="{top + 16}">{text(size(step.n_bytes))}</text>')
    return "".join(parts)


def _table(steps: Sequence[Step]) -> str:
    rows = [
        [
            Cell(code(step.op)),
            Cell(_listed(step.reads)),
            Cell(_listed(step.writes)),
            Cell(text(size(step.n_bytes))),
        ]
        for step in steps
    ]
    return table(_HEADS, rows, caption="Tensors read and written")


def _listed(tensors: Sequence[tuple[str, int]]) -> str:
    return text(", ".join(f"{name} {size(n_bytes)}" for name, n_bytes in tensors))
