"""The guess of a whole program as Markdown, for an issue or a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report import program_words as words
from tracehunch.report.markdown import code, marker, table, text
from tracehunch.report.program_compiled import compiled_notes, compiled_summary
from tracehunch.units import count, share, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.predict.program.model import Amounts, OpRow, ProgramGuess

_COLUMNS: Final = (
    ("<op", None),
    ("calls", None),
    ("kernels", None),
    ("copies", None),
    ("memsets", None),
    ("GPU time", None),
    ("share", None),
)


def render(guess: ProgramGuess, *, top: int = 12) -> str:
    """Return the guess; `top` is how many ops are listed."""
    lines = [marker("guess"), "", f"## {text(words.title(guess))}", "", text(words.meaning(guess)), ""]
    lines += [f"* **{label}**: {text(said)}" for label, said in words.amounts(guess.totals)]
    rows = [row for row in guess.by_op if row.amounts.kernels or row.amounts.copies or row.amounts.untold]
    if rows:
        lines += ["", "### Ops", "", table(_COLUMNS, [_cells(row, guess) for row in rows[:top]])]
    lines += _compiled(guess)
    lines += _sdpa(guess)
    lines += _findings(guess)
    if guess.cannot_tell:
        lines += ["", "### Cannot tell", ""]
        lines += [f"* {text(words.untold(one))}" for one in guess.cannot_tell]
    return "\n".join(lines).rstrip() + "\n"


def _cells(row: OpRow, guess: ProgramGuess) -> list[str]:
    found: Amounts = row.amounts
    least = "≥ " if found.untold else ""
    whole = guess.totals.amounts.time
    return [
        code(row.op),
        count(found.calls),
        *(f"{least}{count(one)}" for one in (found.kernels, found.copies, found.memsets)),
        words.UNKNOWN if found.time is None else time_us(found.time.mid_us),
        share(found.time.mid_us, whole.mid_us) if found.time and whole else words.UNKNOWN,
    ]


def _compiled(guess: ProgramGuess) -> Iterator[str]:
    if guess.compiled is None:
        return
    yield from ("", "### torch.compile", "", text(compiled_summary(guess.compiled)), "")
    for said in compiled_notes(guess.compiled):
        yield f"* {text(said)}"
    rows = [
        [
            code(row.kernel.name),
            count(row.launches),
            "" if row.gpu_time_us is None else time_us(row.gpu_time_us * row.launches),
        ]
        for region in guess.compiled.regions
        for row in region.kernels
    ]
    if rows:
        yield from ("", table((("<generated kernel", None), ("launches", None), ("GPU time", None)), rows))


def _sdpa(guess: ProgramGuess) -> Iterator[str]:
    if not guess.sdpa:
        return
    yield from ("", "### SDPA", "")
    for one in guess.sdpa:
        head, reasons = words.sdpa(one)
        yield f"* {text(head)}"
        yield from (f"  * {text(reason)}" for reason in reasons)


def _findings(guess: ProgramGuess) -> Iterator[str]:
    yield from ("", "### Findings that can be known beforehand", "")
    little = words.smaller(guess)
    if not guess.findings:
        yield "none of weight" if little else "none"
    for one in guess.findings:
        said = words.stake(one)
        where = f" in {code(one.scope)}" if one.scope else ""
        costs = f", {text(said)}" if said else ""
        yield f"* **{one.severity}** {code(one.id)}{where}{costs}: {text(one.summary)}"
        yield from (
            f"  * {label}: {text(why)}" for label, why in (("cause", one.cause), ("fix", one.fix)) if why
        )
    if little:
        yield from ("", text(little))
