"""The profiler's own table as text, in its familiar columns; narrow outputs get those that matter most."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tracehunch.report.layout import Column, Line, Span, View, draw, table
from tracehunch.report.origin import vendor
from tracehunch.report.profiler_table import ProfilerTable, Row, profiler_table
from tracehunch.units import plural, printable, table_percent, table_time_us

if TYPE_CHECKING:
    from tracehunch.tree import Tree

_FULL_WIDTH: Final = 160
_NARROW: Final = 76  # columns; below, only times without what is inside
_NAME_LIMIT: Final = 55

Cell = Callable[[Row, ProfilerTable], str]


def render(tree: Tree, *, view: View | None = None, top: int = 25) -> str:
    """Return the table of a trace: ``top`` rows, then the totals over all rows."""
    view = view or View(width=_FULL_WIDTH + 20)
    computed = profiler_table(tree)
    device = "CUDA" if vendor(tree.trace) == "nvidia" else "Device"
    columns = _columns(device, width=view.width, has_device=computed.has_device)
    cells = [
        [printable(row.name), *(cell(row, computed) for _, cell in columns)] for row in computed.rows[:top]
    ]
    name = Column("Name", "left", _NAME_LIMIT if view.width >= _FULL_WIDTH else 0)
    lines = table([name, *(Column(heading) for heading, _ in columns)], cells, view, indent=0)
    return draw([*lines, *_totals(computed, device, top)], view)


def render_markdown(tree: Tree, *, top: int = 25) -> str:
    """Return the table in a code block that no name in it can end."""
    text = render(tree, top=top)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}{fence}\n"


def table_object(tree: Tree) -> dict[str, object]:
    """Return the whole table for JSON: times in microseconds."""
    computed = profiler_table(tree)
    return {
        "self_cpu_time_total_us": computed.self_cpu_ns / 1000,
        "self_device_time_total_us": computed.self_device_ns / 1000,
        "rows": [
            {
                "name": printable(row.name),
                "on": "device" if row.on_device else "host",
                "annotation": row.annotation,
                "calls": row.calls,
                "self_cpu_us": row.self_cpu_ns / 1000,
                "cpu_us": row.cpu_ns / 1000,
                "self_device_us": row.self_device_ns / 1000,
                "device_us": row.device_ns / 1000,
            }
            for row in computed.rows
        ],
    }


def _columns(device: str, *, width: int, has_device: bool) -> list[tuple[str, Cell]]:
    cpu: list[tuple[str, Cell]] = [
        ("Self CPU %", lambda row, whole: _share(row.self_cpu_ns, whole.self_cpu_ns)),
        ("Self CPU", lambda row, _: _time(row.self_cpu_ns)),
        ("CPU total %", lambda row, whole: _share(row.cpu_ns, whole.self_cpu_ns)),
        ("CPU total", lambda row, _: _time(row.cpu_ns)),
        ("CPU time avg", lambda row, _: _time(row.cpu_ns / row.calls)),
    ]
    gpu: list[tuple[str, Cell]] = [
        (f"Self {device}", lambda row, _: _time(row.self_device_ns)),
        (f"Self {device} %", lambda row, whole: _share(row.self_device_ns, whole.self_device_ns)),
        (f"{device} total", lambda row, _: _time(row.device_ns)),
        (f"{device} time avg", lambda row, _: _time(row.device_ns / row.calls)),
    ]
    calls: tuple[str, Cell] = ("# of Calls", lambda row, _: str(row.calls))
    if width >= _FULL_WIDTH:
        return [*cpu, *(gpu if has_device else []), calls]
    if width < _NARROW:
        return [cpu[1], *([gpu[0]] if has_device else []), calls]
    return [cpu[1], cpu[3], *([gpu[0], gpu[2]] if has_device else []), calls]


def _totals(computed: ProfilerTable, device: str, top: int) -> list[Line]:
    hidden = len(computed.rows) - top
    lines: list[Line] = (
        [(Span(f"{plural(hidden, 'more row')}; --top {len(computed.rows)} lists all", "dim"),)]
        if hidden > 0
        else []
    )
    lines.append((f"Self CPU time total: {_time(computed.self_cpu_ns)}",))
    if computed.has_device:
        lines.append((f"Self {device} time total: {_time(computed.self_device_ns)}",))
    return lines


def _time(ns: float) -> str:
    return table_time_us(ns / 1000)


def _share(part: int, whole: int) -> str:
    return table_percent(100 * part / whole) if whole else "-"
