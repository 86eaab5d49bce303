"""The scopes of a trace, per call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import scope_rows, summary
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table

if TYPE_CHECKING:
    from tracehunch.facts.model import ScopeFacts
    from tracehunch.report.scope_rows import ScopeRow
    from tracehunch.report.summary import Selection
    from tracehunch.verdict import Look

_COUNTS = (Head("scope"), Head("kind"), Head("calls", number=True))
_GPU = (
    Head("kernels", number=True, meaning="compute kernels a call"),
    Head("copies", number=True, meaning="memcpys a call"),
    Head("memsets", number=True),
    Head("GPU time", number=True, meaning="sum of the durations of all GPU activities that it launched"),
)
_CPU = (Head("leaf ops", number=True, meaning="ops without children"),)
_REST = (Head("CPU time", number=True), Head("wall", number=True))
_WORDS = (
    Head("GPU idle"),
    Head("what runs", wide=True),
    Head("limit", wide=True),
    Head("calls differ", wide=True),
)


def scopes_section(look: Look, selection: Selection) -> Section:
    """Return the section: medians over the calls of each scope."""
    shown, folded = scope_rows.shown_scopes(look, selection)
    gpu = summary.has_gpu_work(look)
    heads = (*_COUNTS, *(_GPU if gpu else _CPU), *_REST, *(_WORDS if gpu else _WORDS[1:]))
    rows = [
        _cells(row, scope, gpu=gpu)
        for row, scope in zip(scope_rows.scope_rows(look, shown), shown, strict=True)
    ]
    below = f'<p class="dim">{text(folded)}</p>' if folded else ""
    html = table(heads, rows, caption="Scopes, medians per call", sortable=True, pinned=True) + below
    return Section("scopes", "Scopes", html, aside="per call (median)")


def _cells(row: ScopeRow, scope: ScopeFacts, *, gpu: bool) -> list[Cell]:
    def number(shown: str, key: str) -> Cell:
        value = scope.value(key)
        return Cell(text(shown), float(value) if isinstance(value, int | float) else None)

    counts = (
        [number(row.kernels, "kernels"), number(row.copies, "copies"), number(row.memsets, "memsets"),
         number(row.gpu_time, "gpu_time")]
        if gpu
        else [number(row.leaf_ops, "leaf_ops")]
    )  # fmt: skip
    words = [row.gpu_idle] if gpu else []
    return [
        Cell(code(scope.scope.name)),
        Cell(row.kind),
        Cell(row.calls, float(len(scope.scope.calls))),
        *counts,
        number(row.cpu_time, "cpu_time"),
        number(row.wall_time, "wall_time"),
        *(Cell(text(one)) for one in (*words, row.traits, row.limit, row.spread)),
    ]
