"""The guess of a whole program as one HTML file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import program_words as words
from tracehunch.report.html.escape import code, text
from tracehunch.report.html.page import page
from tracehunch.report.html.program import (
    compiled_section,
    findings_section,
    modules_section,
    ops_section,
    sdpa_section,
    untold_section,
)

if TYPE_CHECKING:
    from tracehunch.predict.program.model import ProgramGuess


def render(guess: ProgramGuess, *, next_command: str = "") -> bytes:
    """Return the page."""
    rows = "".join(f"<dt>{text(k)}</dt><dd>{text(v)}</dd>" for k, v in words.amounts(guess.totals))
    found = [
        ops_section(guess),
        modules_section(guess),
        compiled_section(guess),
        sdpa_section(guess),
        findings_section(guess),
        untold_section(guess),
    ]
    subtitle = (
        f'<p>{text(words.title(guess))}</p><p>{text(words.meaning(guess))}</p><dl class="facts">{rows}</dl>'
    )
    ending = f"Next: {code(next_command)}" if next_command else ""
    return page("tracehunch guess", subtitle, [one for one in found if one is not None], ending=ending)
