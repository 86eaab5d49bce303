"""The guess of a whole program as a hunch.toml that ``tracehunch check`` holds against a trace."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tracehunch.errors import GuessError
from tracehunch.guess import Guess
from tracehunch.guess.scopes import STEP
from tracehunch.guess.write import write_hunch
from tracehunch.predict.program.claims import EVERY, claims_of, scopes_of
from tracehunch.predict.program.compiled_guess import claims as compiled_claims
from tracehunch.predict.program.known import known_of
from tracehunch.report import program_words as words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.guess import Claim
    from tracehunch.predict.program.model import ProgramGuess


def render(guess: ProgramGuess, scope: str, *, device: str | None = None, torch: str | None = None) -> str:
    """Return the text of a hunch.toml; `scope` is what a run of the program is called in the trace.

    `device` and `torch` are as traces have them ("NVIDIA H200", "2.13.0+cu130"), None where that is not
    known: `check` compares them to the trace's.

    Raises:
        GuessError: nothing is certain enough to claim.

    """
    claims = tuple(_claims(guess, scope))
    if not claims:
        raise GuessError(
            "there is nothing to claim", "the program's launches cannot be told", "see --format terminal"
        )
    comments = [
        f"{words.title(guess)}: what to expect of one run.",
        "  tracehunch check hunch.toml TRACE",
        _scope_meaning(scope),
    ]
    comments += [f"Cannot tell: {words.untold(one)}" for one in guess.cannot_tell]
    made = Guess(claims, _context(guess, device, torch), known_of(guess, scope))
    return write_hunch(made, comments, datetime.now(UTC))


def _scope_meaning(scope: str) -> str:
    if scope in STEP:
        return (
            f'Scope "{scope}" is each step of the profiler; --scope NAME takes that of your record_function.'
        )
    return f'Scope "{scope}" is what a run is called in the trace: with record_function("{scope}"): ...'


def _claims(guess: ProgramGuess, scope: str) -> Iterator[Claim]:
    """Yield the claims of a whole run, then those of each outermost annotation that the program makes."""
    yield from (replace(claim, scope=scope) for claim in claims_of(guess, EVERY[0]))
    if guess.compiled is not None:
        yield from compiled_claims(guess.compiled, scope)
        return  # annotations around compiled code hold launches that the guess does not tell apart
    for name in scopes_of(guess):
        if name != scope:
            yield from claims_of(guess, name)


def _context(guess: ProgramGuess, device: str | None, torch: str | None) -> dict[str, str]:
    env = guess.env
    context = {"program": guess.program.name, "torch_version": env.torch_name}
    context |= {name: text for name, text in (("device", device), ("torch", torch)) if text is not None}
    if env.gpu is not None:
        context["gpu"] = env.gpu.name
    if env.compute_capability is not None:
        context["compute_capability"] = ".".join(map(str, env.compute_capability))
    return context
