"""What torch.compile is expected to make of a program: for a terminal, and as plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.json_report import Object, json_text
from tracehunch.report.layout import Column, Line, Span, View, heading, paragraph, table
from tracehunch.report.program_names import room_for_names, short_names
from tracehunch.units import count, plural, printable, time_us

if TYPE_CHECKING:
    from tracehunch.predict.program.compiled_guess import CompiledGuess, KernelRow, RegionGuess

_SHOWN: Final = 8


def compiled_object(guess: CompiledGuess) -> Object:
    """Return regions with their kernels, graph breaks and recompiles as plain data."""
    program = guess.program
    return {
        "inductor": program.inductor,
        "mode": program.mode,
        "regions_run": guess.n_runs,
        "graph_breaks": [
            {"reason": json_text(one.reason), "line": one.line, "remedy": json_text(one.remedy)}
            for one in program.breaks
        ],
        "recompiles": [
            {
                "function": json_text(one.function),
                "call": one.call,
                "reason": json_text(one.reason),
                "line": one.line,
            }
            for one in program.recompiles
        ],
        "steady": program.steady,
        "regions": [_region_object(one) for one in guess.regions],
    }


def compiled_summary(guess: CompiledGuess) -> str:
    """Say how many regions, graph breaks and recompiles there are, and who compiled."""
    program = guess.program
    broken, again = len(program.breaks), len(program.recompiles)
    return (
        f"{plural(guess.n_runs, 'region')} in a call, {plural(broken, 'graph break')}, "
        f"{plural(again, 'recompile')} after the first call; by Inductor {program.inductor}"
    )


def compiled_notes(guess: CompiledGuess) -> list[str]:
    """Tell each graph break and recompile."""
    told = []
    for one in guess.program.breaks:
        where = f" ({one.line})" if one.line else ""
        told.append(printable(f"break{where}: {one.reason}"))
    for again in guess.program.recompiles:
        what = f"{again.function} again ({again.line})"
        told.append(printable(f"call {again.call} compiles {what}: {again.reason}"))
    return told


def compiled_lines(guess: CompiledGuess, view: View) -> list[Line]:
    """Return the section of a terminal report."""
    lines = [*heading("torch.compile", ""), *paragraph(compiled_summary(guess), view, indent=2)]
    for said in compiled_notes(guess):
        lines += paragraph(said, view, first=("  ",), indent=4)
    for region in guess.regions:
        lines += _region_lines(region, view)
    return lines


def _region_lines(region: RegionGuess, view: View) -> list[Line]:
    own = region.region
    name = f"  {own.phase} {own.id}" + (f" ({own.line})" if own.line else "")
    library = ", ".join(f"{count(n)} {op.removeprefix('aten::')}" for op, n in region.library)
    lines = [(), *paragraph(f"{name}: {library or 'no library calls'}", view, indent=4)]
    if own.unknown:
        return [*lines, *paragraph(f"its kernels are not known: {printable(own.unknown)}", view, indent=4)]
    if not region.kernels:
        return lines
    columns = [Column("generated kernel", "left", cut="middle"), Column("launches"), Column("GPU time")]
    rows = sorted(region.kernels, key=lambda row: -(row.gpu_time_us or 0) * row.launches)
    cells: list[list[Span | str]] = [
        [row.kernel.name, count(row.launches), _time(row)] for row in rows[:_SHOWN]
    ]
    names = short_names([row.kernel.name for row in rows[:_SHOWN]], room_for_names(columns, cells, view))
    lines += table(columns, [[name, *row[1:]] for name, row in zip(names, cells, strict=True)], view)
    more = len(rows) - _SHOWN
    return [*lines, *(paragraph(f"and {plural(more, 'kernel')} more", view, indent=4) if more > 0 else [])]


def _time(row: KernelRow) -> str:
    return "" if row.gpu_time_us is None else time_us(row.gpu_time_us * row.launches)


def _region_object(region: RegionGuess) -> Object:
    own, amounts = region.region, region.amounts
    made: Object = {
        "id": own.id,
        "graph": own.graph,
        "phase": own.phase,
        "line": own.line,
        "runs": region.runs,
        "kernels": amounts.kernels,
        "copies": amounts.copies,
        "memsets": amounts.memsets,
        "bytes": amounts.bytes,
        "generated": [_kernel_object(row) for row in region.kernels],
        "library": [{"op": op, "calls": calls} for op, calls in region.library],
    }
    if amounts.time is not None:
        made["gpu_time_us"] = round(amounts.time.mid_us, 3)
    if own.replayed or own.not_replayed:
        made["cuda_graph"] = own.replayed
    if own.unknown:
        made["unknown"] = json_text(own.unknown)
    return made


def _kernel_object(row: KernelRow) -> Object:
    made: Object = {"name": row.kernel.name, "launches": row.launches, "fused": list(row.kernel.ops)}
    if row.kernel.bytes is not None:
        made["bytes"] = row.kernel.bytes
    if row.gpu_time_us is not None:
        made["gpu_time_us"] = round(row.gpu_time_us, 3)
    return made
