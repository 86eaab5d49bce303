"""The guess of a whole program: ops and modules as tables, SDPA, findings, and what cannot be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import program_words as words
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.program_compiled import compiled_notes, compiled_summary
from tracehunch.units import count, share, size, time_range_us, time_us

if TYPE_CHECKING:
    from tracehunch.predict.program.model import Amounts, Foreseen, ProgramGuess

_NUMBERS: Final = (
    Head("calls", number=True),
    Head("kernels", number=True),
    Head("copies", number=True),
    Head("memsets", number=True),
    Head("GPU time", number=True),
    Head("range", number=True),
    Head("share", number=True, meaning="of the whole GPU time"),
    Head("bytes", number=True),
    Head("bound"),
)


def ops_section(guess: ProgramGuess) -> Section:
    """Return all ops in all modules, the most GPU time first."""
    rows = [
        [Cell(code(row.op)), Cell(code(row.module) if row.module else ""), *_cells(row.amounts, guess)]
        for row in guess.ops
        if row.amounts.kernels or row.amounts.copies or row.amounts.memsets or row.amounts.untold
    ]
    total = [[Cell(code(row.op)), *_cells(row.amounts, guess)] for row in guess.by_op]
    html = table((Head("op"), *_NUMBERS), total, caption="Ops, all modules together", sortable=True)
    heads = (Head("op"), Head("module", wide=True), *_NUMBERS)
    by_module = table(heads, rows, caption="Ops by module", sortable=True)
    html += f"<details><summary>By op and module</summary>{by_module}</details>"
    return Section("ops", "Ops", html, aside="by GPU time, as a trace attributes launches")


def modules_section(guess: ProgramGuess) -> Section | None:
    """Return the modules, each with all inside it; None where there are none."""
    rows = [
        [Cell(code(row.module)), Cell(text(row.module_type)), *_cells(row.amounts, guess)]
        for row in guess.modules
        if row.module
    ]
    if not rows:
        return None
    heads = (Head("module"), Head("type"), *_NUMBERS)
    html = table(heads, rows, caption="Modules", sortable=True)
    return Section("modules", "Modules", html, aside="with all inside them")


def _cells(found: Amounts, guess: ProgramGuess) -> list[Cell]:
    least = ">= " if found.untold else ""
    whole = guess.totals.amounts.time
    time = found.time
    return [
        Cell(count(found.calls), float(found.calls)),
        *(Cell(f"{text(least)}{count(n)}", float(n)) for n in (found.kernels, found.copies, found.memsets)),
        Cell("?" if time is None else text(time_us(time.mid_us)), time.mid_us if time else None),
        Cell(
            "" if time is None else text(time_range_us(time.low_us, time.high_us)),
            time.high_us if time else None,
        ),
        Cell(text(share(time.mid_us, whole.mid_us)) if time and whole else "", time.mid_us if time else None),
        Cell(text(size(found.bytes)), float(found.bytes)),
        Cell(found.bound or ""),
    ]


def compiled_section(guess: ProgramGuess) -> Section | None:
    """Return what torch.compile would make of it; None where nothing is compiled."""
    if guess.compiled is None:
        return None
    notes = "".join(f"<li>{text(said)}</li>" for said in compiled_notes(guess.compiled))
    rows = [
        [
            Cell(text(f"{region.region.phase} {region.region.id}")),
            Cell(code(row.kernel.name)),
            Cell(text(", ".join(row.kernel.ops))),
            Cell(count(row.launches), float(row.launches)),
            Cell(
                "" if row.gpu_time_us is None else text(time_us(row.gpu_time_us * row.launches)),
                row.gpu_time_us,
            ),
        ]
        for region in guess.compiled.regions
        for row in region.kernels
    ]
    heads = (
        Head("region"),
        Head("generated kernel"),
        Head("ops merged"),
        Head("launches", number=True),
        Head("GPU time", number=True),
    )
    listed = table(heads, rows, caption="Generated kernels", sortable=True) if rows else ""
    return Section(
        "compiled",
        "torch.compile",
        f"<p>{text(compiled_summary(guess.compiled))}</p><ul>{notes}</ul>{listed}",
    )


def sdpa_section(guess: ProgramGuess) -> Section | None:
    """Return which backend answers each SDPA call, and why; None where there are no such calls."""
    cards = []
    for one in guess.sdpa:
        head, reasons = words.sdpa(one)
        items = "".join(f"<li>{text(reason)}</li>" for reason in reasons)
        cards.append(f'<article class="card"><p>{text(head)}</p><ul>{items}</ul></article>')
    return Section("sdpa", "SDPA", "".join(cards)) if cards else None


def findings_section(guess: ProgramGuess) -> Section:
    """Return the findings that can be known beforehand."""
    html = "".join(_finding(at, one) for at, one in enumerate(guess.findings, 1))
    little = words.smaller(guess)
    html = html or f"<p>{'none of weight' if little else 'none'}</p>"
    html += f"<p>{text(little)}</p>" if little else ""
    return Section("findings", "Findings", html, aside="that can be known beforehand")


def _finding(number: int, one: Foreseen) -> str:
    where = f" in {code(one.scope)}" if one.scope else ""
    rows = "".join(
        f"<dt>{label}</dt><dd>{text(said)}</dd>"
        for label, said in (("cause", one.cause), ("fix", one.fix))
        if said
    )
    return (
        f'<article class="card {one.severity}" id="f-{number}"><h3>'
        f'<span class="tag {one.severity}">{one.severity}</span> '
        f'<span><a class="anchor" href="#f-{number}">{text(one.id)}</a>{where}</span> '
        f'<span class="stake">{text(words.stake(one))}</span></h3>'
        f'<p>{text(one.summary)}</p><dl class="facts">{rows}</dl></article>'
    )


def untold_section(guess: ProgramGuess) -> Section | None:
    """Return what cannot be told; None where all can."""
    items = "".join(f"<li>{text(words.untold(one))}</li>" for one in guess.cannot_tell)
    return Section("untold", "Cannot tell", f"<ul>{items}</ul>") if items else None
