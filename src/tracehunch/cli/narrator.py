"""What ``tracehunch attention`` says on stderr while it works, and the questions of ``--ask``."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from tracehunch.attention.questions import Question, claim, own_guess, own_verdict, questions
from tracehunch.errors import GuessError, TracehunchError
from tracehunch.journal import Score, append, entry_of, history, journal_path, standing
from tracehunch.report.attention_words import expert_text, guess_text, own_lines, seen_text
from tracehunch.report.layout import wrap
from tracehunch.units import percent, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.attention.expert import Expert
    from tracehunch.attention.outcome import Device, Outcome
    from tracehunch.attention.variant import Variant
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim, Guess

_WIDTH = 80
_TRIES = 2


class Narrator:
    """Tells each guess before its look, asks the user for theirs, and tells how they came out."""

    def __init__(self, *, asks: bool) -> None:
        self._asks = asks
        self._input_ended = False
        self._scores: list[Score] = []
        self._untold: set[str] = set()

    def guessed(self, variant: Variant, guess: Guess, device: Device, expert: Expert | None = None) -> None:
        """Say the guesses with the seals that they had before the look; the tool's only after the user's."""
        own = own_guess(guess).claims
        where = f"{variant.name}{' (recorded)' if device.recorded else ''}"
        if own:
            _say(f"you guess {guess_text(own)}; sealed {guess.seal[:8]}", indent=4)
        elif self._asks and not self._input_ended:
            too = f", the expert's {expert.guess.seal[:8]}" if expert is not None and expert.guesses else ""
            told = f"the textbook's guess is sealed {guess.seal[:8]}{too}, and told after yours"
            _say(f"{where}: {told}", indent=0)
        else:
            _say(f"{where}: guess {guess_text(guess.claims)}; sealed {guess.seal[:8]}", indent=0)
            self._tell(expert, seal=True)

    def ask(
        self,
        variant: Variant,
        workload: Workload,
        device: Device,
        last: Outcome | None,
        expert: Expert | None = None,
    ) -> Sequence[Claim]:
        """Ask for the user's own claims; an empty answer skips a question, the end of the input all."""
        if not self._asks or self._input_ended:
            return ()
        _say(f"{variant.changed}. Your guess? (Enter skips)", indent=2)
        own = tuple(self._claims(variant, questions(workload, device, last)))
        _say(f"the textbook guesses {guess_text(variant.textbook(workload, device.kind))}", indent=4)
        self._tell(expert, seal=False)
        return own

    def looked(self, outcome: Outcome) -> None:
        """Say what was seen and how the user's own claims came out."""
        _say(seen_text(outcome), indent=2)
        own = own_guess(outcome.guess)
        if not own.claims or outcome.look is None:
            return
        for line in own_lines(outcome):
            _say(line, indent=4)
        entry = replace(entry_of(own, own_verdict(outcome), outcome.variant.name), seal=outcome.guess.seal)
        self._scores.append(entry.score)
        try:
            append(entry)
        except TracehunchError as error:  # a full disk costs the record, not the run
            _say(str(error), indent=4)

    def score(self) -> str:
        """How the user did, now and over time, and where that is kept; "" if they guessed nothing."""
        if not self._scores:
            return ""
        told = plural(sum(one.told for one in self._scores), "guess", "guesses")
        now = f"{sum(one.held for one in self._scores)} of {told}"
        ever = standing(history())
        latest = "" if ever.recent is None else f" (latest {ever.recent_told}: {percent(100 * ever.recent)})"
        return f"You had {now} right; over time {ever.held} of {ever.told}{latest}. Journal: {journal_path()}"

    def _tell(self, expert: Expert | None, *, seal: bool) -> None:
        """Say the expert guess; why there is none only once."""
        if expert is None or expert.untold in self._untold:
            return
        if expert.untold:
            self._untold.add(expert.untold)
            _say(f"no expert guess: {expert.untold}", indent=4)
            return
        told = expert_text(expert) + (f"; sealed {expert.guess.seal[:8]}" if seal else "")
        _say(f"the expert guesses {told}", indent=4)

    def _claims(self, variant: Variant, asked: Sequence[Question]) -> Iterator[Claim]:
        for question in asked:
            answer = self._answer(question, variant)
            if answer is not None:
                yield answer

    def _answer(self, question: Question, variant: Variant) -> Claim | None:
        """Read an answer as a claim; nonsense is asked about once more. None for no answer."""
        for left in range(_TRIES, 0, -1):
            click.echo(f"    {question.text}: ", nl=False, err=True)
            line = sys.stdin.readline()
            if not sys.stdin.isatty():
                click.echo(line.rstrip("\n"), err=True)  # so that a log reads like a conversation
            self._input_ended = not line
            if not line.strip():
                return None
            try:
                return claim(question, line, variant)
            except GuessError as error:
                _say(f"{error}; {'once more' if left > 1 else 'skipped'}", indent=6)
        return None


def _say(text: str, indent: int) -> None:
    for number, line in enumerate(wrap(text, _WIDTH - indent - 2)):
        click.echo(" " * (indent + 2 * (number > 0)) + line, err=True)
