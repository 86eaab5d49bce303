"""What ``%%hunch`` shows: lines of text before the cell runs, and the verdict after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.errors import TracehunchError
from tracehunch.journal import append, entry_of, history, standing
from tracehunch.report import notebook_html, terminal
from tracehunch.report.layout import View
from tracehunch.report.verdict_text import expected_text
from tracehunch.units import percent, plural, printable

if TYPE_CHECKING:
    from tracehunch.guess import Guess
    from tracehunch.verdict import Look

_CLAIMS_SHOWN = 8


def tell(text: str) -> None:
    """Show a line of text."""
    from IPython.display import display  # noqa: PLC0415  # loaded wherever there is a shell

    display({"text/plain": text}, raw=True)


def tell_guess(guess: Guess, *, scope: str) -> None:
    """Say what was guessed, and its seal, before the cell runs."""
    if not guess.claims:
        return
    said = [
        f"{one.key} {expected_text(one)}" + ("" if one.scope == scope else f" in {printable(one.scope)}")
        for one in guess.claims[:_CLAIMS_SHOWN]
    ]
    more = len(guess.claims) - len(said)
    tell(f"You guess {', '.join(said)}{f' and {more} more' if more else ''}; sealed {guess.seal[:8]}")


def show_look(look: Look, source: str) -> None:
    """Show what was seen: HTML where a notebook can, the terminal's report elsewhere."""
    from IPython.display import display  # noqa: PLC0415  # as above

    text = terminal.render(look, view=View(), source=source)
    display({"text/html": notebook_html.look_html(look, source), "text/plain": text}, raw=True)


def tell_score(guess: Guess, look: Look) -> None:
    """Write a typed guess into the journal, and say how good the guesses are over time."""
    entry = entry_of(guess, look.verdict)
    try:
        append(entry)
    except TracehunchError as error:  # a full disk costs the record, not the look
        tell(str(error))
        return
    ever = standing(history())
    latest = "" if ever.recent is None else f" (latest {ever.recent_told}: {percent(100 * ever.recent)})"
    now = f"{entry.score.held} of {plural(entry.score.told, 'guess', 'guesses')}"
    tell(f"You had {now} right; over time {ever.held} of {ever.told}{latest}.")
