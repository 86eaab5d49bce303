"""Guess against facts: what held, what is a surprise, and what the trace cannot tell."""

from collections.abc import Sequence

from tracehunch import checks
from tracehunch.facts import measure
from tracehunch.facts.model import Facts
from tracehunch.guess.model import Guess
from tracehunch.judge.confront import Told, confront
from tracehunch.judge.known import grown
from tracehunch.judge.surprises import rank, surprise
from tracehunch.trace.collecting import uncollected
from tracehunch.trace.model import Trace
from tracehunch.tree import link
from tracehunch.verdict import CannotTell, Checked, Held, Look, Verdict

__all__ = ["examine", "judge"]


def examine(trace: Trace, guesses: Sequence[Guess] = ()) -> Look:
    """Take one whole look: link, measure, run the checks, judge the guesses."""
    with uncollected():
        facts = measure(link(trace))
        checked = checks.run(facts)
        return Look(facts, checked, judge(guesses, facts, checked))


def judge(guesses: Sequence[Guess], facts: Facts, checked: Checked) -> Verdict:
    """Return what became of each claim: held, a surprise, or cannot tell; surprises by time at stake."""
    by_guess = [(guess, list(confront(guess.claims, facts))) for guess in guesses]
    outcomes = [one for _, some in by_guess for one in some]
    told = [one for one in outcomes if isinstance(one, Told)]
    expert = _expert_outcomes(told)
    surprises = []
    for guess, some in by_guess:
        # what was there already when the guess was made cannot be why it broke
        causes = grown(checked.findings, guess)
        broken = [one for one in some if isinstance(one, Told) and not one.holds]
        surprises += [
            surprise(one, facts, causes, expert_holds=expert.get((one.claim.key, one.claim.scope)))
            for one in broken
        ]
    return Verdict(
        held=tuple(Held(one.claim, one.fact.value) for one in told if one.holds),
        surprises=tuple(sorted(surprises, key=rank)),
        cannot_tell=tuple(dict.fromkeys(one for one in outcomes if isinstance(one, CannotTell))),
    )


def _expert_outcomes(told: Sequence[Told]) -> dict[tuple[str, str], bool]:
    """For each key and scope with an expert guess whether all of it held."""
    outcomes: dict[tuple[str, str], bool] = {}
    for one in told:
        if one.claim.who == "expert":
            where = (one.claim.key, one.claim.scope)
            outcomes[where] = outcomes.get(where, True) and one.holds
    return outcomes
