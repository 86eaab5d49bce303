"""The guess of a whole program for a terminal: totals, the ops that cost, SDPA, findings, what is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import program_tables
from tracehunch.report import program_words as words
from tracehunch.report.finding_texts import SEVERITY_STYLE
from tracehunch.report.layout import Line, Span, View, draw, heading, paragraph
from tracehunch.report.program_compiled import compiled_lines
from tracehunch.units import elide, printable

if TYPE_CHECKING:
    from tracehunch.predict.program.model import Foreseen, ProgramGuess


def render(guess: ProgramGuess, view: View, *, top: int = 12, next_command: str = "") -> str:
    """Return the guess as text; `top` is how many ops and modules are listed."""
    lines: list[Line] = [
        *paragraph(words.title(guess), view, style="bold"),
        *paragraph(words.meaning(guess), view, style="dim"),
        (),
    ]
    for label, text in words.amounts(guess.totals):
        lines += paragraph(text, view, first=(Span(f"  {label:<10}", "dim"),), indent=12)
    lines += program_tables.ops(guess, view, top)
    lines += program_tables.modules(guess, view, top)
    if guess.compiled is not None:
        lines += compiled_lines(guess.compiled, view)
    lines += _sdpa(guess, view)
    lines += _findings(guess, view)
    lines += _untold(guess, view)
    if next_command:
        lines += [(), (Span("Next: ", "dim"), Span(printable(next_command), "bold"))]
    return draw(lines, view)


def _sdpa(guess: ProgramGuess, view: View) -> list[Line]:
    if not guess.sdpa:
        return []
    lines = heading("SDPA", "scaled_dot_product_attention: which backend answers, and why")
    for one in guess.sdpa:
        head, reasons = words.sdpa(one)
        lines += paragraph(head, view, first=("  ",), indent=4)
        for reason in reasons:
            lines += paragraph(reason, view, first=("    ",), indent=6, style="dim")
    return lines


def _findings(guess: ProgramGuess, view: View) -> list[Line]:
    found = guess.findings
    little = words.smaller(guess)
    if not found:
        none = "none of weight" if little else "none that can be known beforehand"
        lines: list[Line] = [(), (Span("Findings", "bold"), Span(f"  {none}", "dim"))]
        return [*lines, *(paragraph(little, view, first=("  ",), indent=4) if little else ())]
    lines = heading("Findings", "that can be known beforehand; warnings first, then by time at stake")
    for one in found:
        lines += _finding(one, view)
    return [*lines, *([(), *paragraph(little, view, first=("  ",), indent=4)] if little else ())]


def _finding(one: Foreseen, view: View) -> list[Line]:
    severity = Span(one.severity, SEVERITY_STYLE[one.severity])
    where = f" in {elide(printable(one.scope), 40)}" if one.scope else ""
    head: Line = ("  ", severity, "  ", Span(one.id, "bold"), where)
    said = words.stake(one)
    fits = len(f"  {one.severity}  {one.id}{where}  {said}") <= view.width
    lines: list[Line] = [(), (*head, f"  {said}" if said and fits else "")]
    if said and not fits:
        lines.append(("    ", said))
    lines += paragraph(printable(one.summary), view, indent=4)
    for label, text in (("cause", one.cause), ("fix", one.fix)):
        if text:
            lines += paragraph(printable(text), view, first=(Span(f"    {label:<8}", "dim"),), indent=13)
    return lines


def _untold(guess: ProgramGuess, view: View) -> list[Line]:
    if not guess.cannot_tell:
        return []
    lines = heading("Cannot tell")
    for one in guess.cannot_tell:
        lines += paragraph(words.untold(one), view, first=("  ",), indent=4)
    return lines
