"""Claims in the words of a marker or of ``p.check``, and the guess that they make for a profile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.errors import GuessError
from tracehunch.guess.claims import NOT_KEYS, SHORT, claims_from_mapping, known_key
from tracehunch.guess.model import Claim, Guess
from tracehunch.pytest_plugin._settings import MARKER, OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pytest

WORDS: Final[Mapping[str, str]] = {**SHORT, "sdpa": "sdpa.backend"}
"""Short words -> keys."""

_LEAST: Final[Mapping[str, int]] = {"steps": 1, "warmup": 0}
"""Options that are numbers of calls -> the least that makes sense."""


@dataclass(frozen=True, slots=True)
class MarkerClaims:
    """The claims of one marker; ``scope`` is None for what the test profiles, whatever it is called."""

    scope: str | None
    claims: Mapping[str, object]


def vocabulary_key(written: str) -> str:
    """Return the vocabulary's key for a key or a short word.

    Raises:
        GuessError: there is none; near ones are named.

    """
    __tracebackhide__ = True
    try:
        return known_key(WORDS.get(written, written))
    except GuessError as error:
        raise GuessError(error.what, error.why, error.todo) from None  # from here: its traceback says nothing


def marker_claims(item: pytest.Item) -> tuple[MarkerClaims, ...]:
    """Return the claims of an item's markers, the closest first.

    Raises:
        GuessError: a marker that cannot be understood.

    """
    found = []
    for mark in item.iter_markers(MARKER):
        claims = {key: value for key, value in mark.kwargs.items() if key not in (*OPTIONS, "scope")}
        one = MarkerClaims(_scope(mark), claims)
        guess_of([one], one.scope or "test")  # an unknown word is told before anything runs
        found.append(one)
    return tuple(found)


def marker_options(item: pytest.Item) -> dict[str, object]:
    """Return how an item's markers say to record; the closest one decides.

    Raises:
        GuessError: an option that is neither a number nor true or false.

    """
    options: dict[str, object] = {}
    for mark in item.iter_markers(MARKER):
        for name in OPTIONS:
            if name in mark.kwargs:
                options.setdefault(name, _checked(name, mark.kwargs[name]))
    return options


def guess_of(markers: Iterable[MarkerClaims], label: str) -> Guess:
    """Return the guess that markers make about a profile; of two claims of one key the first counts."""
    claims: dict[tuple[str, str], Claim] = {}
    for one in markers:
        for claim in claims_of(one.claims, label if one.scope is None else one.scope):
            claims.setdefault((claim.scope, claim.key), claim)
    return Guess(tuple(claims.values()))


def claims_of(claims: Mapping[str, object], scope: str) -> tuple[Claim, ...]:
    """Return claims about a scope; a short word stands for its key.

    Raises:
        GuessError: an unknown key, or a value that cannot be understood.

    """
    known = {
        name if name in NOT_KEYS or isinstance(value, dict) else WORDS.get(name, name): value
        for name, value in claims.items()
    }
    if len(known) < len(claims):
        raise GuessError(f"{' and '.join(claims)}: a key is claimed twice", "", "keep one")
    return claims_from_mapping(scope, known)


def _scope(mark: pytest.Mark) -> str | None:
    given = [*mark.args, *([mark.kwargs["scope"]] if "scope" in mark.kwargs else [])]
    if len(given) > 1 or not all(isinstance(one, str) for one in given):
        raise GuessError(
            f"{', '.join(map(repr, given))} is no scope",
            "",
            'write @pytest.mark.tracehunch("attn", kernels=5)',
        )
    return str(given[0]) if given else None


def _checked(name: str, value: object) -> object:
    counts = name in _LEAST
    if isinstance(value, bool) and not counts:
        return value
    if type(value) is int and counts and value >= _LEAST[name]:
        return value
    raise GuessError(
        f"{name} = {value!r} is {'no number of calls' if counts else 'neither True nor False'}",
        "",
        f"write {name}={3 if counts else True}",
    )
