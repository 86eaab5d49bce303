"""Kernels by GPU time: with scripts they are filtered and grouped; a plain table without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import kernel_rows
from tracehunch.report.html.escape import code, name, text
from tracehunch.report.html.kernels.modules import by_module, module_names
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.summary import Selection
from tracehunch.units import count, share

if TYPE_CHECKING:
    from tracehunch.facts.model import KernelUse, ScopeFacts
    from tracehunch.report.kernel_rows import KernelRow, KernelTable, OpTable
    from tracehunch.verdict import Look

_MOST: Final = 400
"""Rows of a table; what is beyond is said, with its share of the time."""

_HEADS: Final = (
    Head("share", number=True, meaning="of the scope's GPU time"),
    Head("time", number=True, meaning="a call, all its runs together"),
    Head("runs", number=True, meaning="a call"),
    Head("occupancy", number=True, meaning="theoretical, recomputed from the launch"),
    Head("limit", wide=True),
    Head("launched by"),
    Head("module", wide=True),
    Head("library"),
    Head("what it is", wide=True),
    Head("name", wide=True),
)
_OPS: Final = (
    Head("share", number=True, meaning="of the time in ops themselves"),
    Head("self", number=True),
    Head("total", number=True),
    Head("calls", number=True),
    Head("op"),
)


def kernels_section(look: Look, selection: Selection) -> Section | None:
    """Return the section; None where nothing ran."""
    whole = Selection(selection.scopes, _MOST, selection.all_scopes, selection.all_findings)
    scopes = kernel_rows.main_scopes(look, whole)
    tables = kernel_rows.kernel_tables(look, whole)
    html = [_kernels(scope, one, look) for scope, one in zip(scopes, tables, strict=True)]
    tree = look.facts.tree
    modules = [by_module(tree, one.kernels, max(len(one.scope.calls), 1)) for one in scopes] if tables else []
    html += [_ops(one) for one in kernel_rows.op_tables(look, whole)]
    if not html:
        return None
    title = "Kernels" if tables else "Ops"
    return Section("kernels", title, "".join(html), aside="per call", data=modules, scripts=("kernels",))


def _kernels(scope: ScopeFacts, one: KernelTable, look: Look) -> str:
    uses = scope.kernels[: len(one.rows)]
    modules = module_names(look.facts.tree, uses)
    rows = [_cells(row, use, module) for row, use, module in zip(one.rows, uses, modules, strict=True)]
    total = sum(use.gpu_time_us for use in scope.kernels)
    hidden = scope.kernels[len(uses) :]
    left = ""
    if hidden:
        left = (
            f"{count(len(hidden))} more, {share(sum(use.gpu_time_us for use in hidden), total)} of the time"
        )
    below = "".join(
        f'<p class="dim">{text(more)}</p>' for more in (left, one.unclassified, one.peaks) if more
    )
    listed = table(_HEADS, rows, caption=f"Kernels in {one.scope}", sortable=True)
    return f'<div class="kernels"><h3>{code(one.scope)}</h3>{listed}{below}</div>'


def _cells(row: KernelRow, use: KernelUse, module: str) -> list[Cell]:
    return [
        Cell(text(row.share), use.gpu_time_us),
        Cell(text(row.time), use.gpu_time_us),
        Cell(row.per_call, float(use.per_call)),
        Cell(text(row.occupancy), use.occupancy_percent),
        Cell(text(row.limit)),
        Cell(code(row.op)),
        Cell(code(module) if module else ""),
        Cell(text(use.identity.library)),
        Cell(text(row.what)),
        Cell(name(row.name)),
    ]


def _ops(one: OpTable) -> str:
    rows = [
        [
            Cell(text(row.share)),
            Cell(row.self_time),
            Cell(row.total_time),
            Cell(row.calls),
            Cell(code(row.op)),
        ]
        for row in one.rows
    ]
    below = f'<p class="dim">{text(one.rest)}</p>' if one.rest else ""
    return f"<h3>{code(one.scope)}</h3>{table(_OPS, rows, caption=f'Ops in {one.scope}')}{below}"
