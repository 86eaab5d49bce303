"""The questions that a cell is asked about before it runs, and the claims that the answers make."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tracehunch.errors import GuessError
from tracehunch.facts.vocabulary import KEYS
from tracehunch.guess.claims import SHORT, claims_from_line, claims_from_mapping
from tracehunch.guess.words import CHOICES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tracehunch.guess import Claim

_TRIES: Final = 2
_CLAIM: Final = re.compile(r"(?P<key>[A-Za-z_][\w.]*)(?P<relation>[:=<>~≤≥])?")


@dataclass(frozen=True, slots=True)
class Question:
    """One question; its answer is the value of ``key``, or for "" whole claims (``memsets 0, copies 1``)."""

    text: str
    key: str = ""


_BACKEND: Final = Question("SDPA backend (none, math, efficient, flash, cudnn)", "sdpa.backend")
_REST: Final = Question("anything else, as any_copies 0, gpu_time < 2ms")
_GPU: Final = (
    Question("kernels", "kernels"),
    Question("memcpys", "copies"),
    _BACKEND,
    Question("op that takes the most GPU time", "dominant"),
    _REST,
)
_CPU: Final = (
    Question("leaf ops (ops without children)", "leaf_ops"),
    _BACKEND,
    Question("op that takes the most time, as you call it", "dominant"),
    Question("anything else, as cpu_time < 20ms"),
)


def ask(
    scope: str, device: str, answer_to: Callable[[str], str], tell: Callable[[str], None]
) -> tuple[Claim, ...]:
    """Ask about one run of a cell on "cuda" or "cpu"; "" skips a question, EOFError the rest.

    ``answer_to`` shows a prompt and returns what was typed, as ``input`` does; ``tell`` shows why an answer
    was not understood.
    """
    claims: dict[str, Claim] = {}
    first, *others = _GPU if device == "cuda" else _CPU
    opening = replace(first, text=f"Your guess for a run of this cell? Enter skips. {first.text}")
    for question in (opening, *others):
        try:
            said = _answer(scope, question, claims, answer_to, tell)
        except EOFError:
            break
        claims |= {claim.key: claim for claim in said}
    return tuple(claims.values())


def claims_of(scope: str, words: Iterable[str]) -> tuple[Claim, ...]:
    """Make claims of the words behind the magic: ``kernels=5 gpu_time="< 2ms"``, or ``kernels 5, copies 0``.

    Raises:
        GuessError: as ``claims_from_line`` does.

    """
    said = ""
    for word in words:
        found = _CLAIM.match(word)
        starts = found is not None and (found["relation"] is not None or found["key"] in {*KEYS, *SHORT})
        said += f"{', ' if starts and said else ' '}{word}"
    return claims_from_line(scope, said) if said.strip() else ()


def _answer(
    scope: str,
    question: Question,
    before: dict[str, Claim],
    answer_to: Callable[[str], str],
    tell: Callable[[str], None],
) -> tuple[Claim, ...]:
    """Read an answer as claims; what cannot be understood is asked about once more."""
    for left in range(_TRIES - 1, -1, -1):
        typed = answer_to(f"{question.text}: ").strip()
        try:
            return _claims(scope, question, before, typed) if typed else ()
        except GuessError as error:
            tell(f"{error}; {'once more' if left else 'skipped'}")
    return ()


def _claims(scope: str, question: Question, before: dict[str, Claim], typed: str) -> tuple[Claim, ...]:
    if question.key:
        several = "," in typed and question.key in ("dominant", "sdpa.backend")
        value = [part.strip() for part in typed.split(",")] if several else typed
        said = claims_from_mapping(scope, {question.key: value})
        return said if question.key != "sdpa.backend" else tuple(map(_known_backend, said))
    claims = claims_from_line(scope, typed)
    if twice := [claim.key for claim in claims if claim.key in before]:
        raise GuessError(f"{twice[0]} is claimed twice", "", "keep one")
    return claims


def _known_backend(claim: Claim) -> Claim:
    """Refuse what is no backend: a slip of the pen would be a surprise that means nothing."""
    known = CHOICES["sdpa.backend"]
    for word in claim.expected if isinstance(claim.expected, tuple) else (claim.expected,):
        if word not in known:
            raise GuessError(f"there is no SDPA backend {word!r}", "", f"there are {', '.join(known)}")
    return claim
