"""A Guess from whatever it is written as: a mapping of claims, several of them, a hunch.toml, a Guess."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tracehunch.errors import GuessError
from tracehunch.guess.claims import claims_from_mapping
from tracehunch.guess.hunch import read_hunch, refuse_duplicates
from tracehunch.guess.model import Claim, Guess

Written = Guess | Mapping[str, object] | Sequence[Mapping[str, object]] | str | os.PathLike[str]
"""``{"kernels": 5, "sdpa.backend": "flash"}``, one such for each scope, a hunch.toml's path, or a Guess."""


def guess_of(written: Written, scope: str = "") -> Guess:
    """Return the guess; ``scope`` is what claims are about that name no ``scope`` themselves.

    Raises:
        GuessError: it cannot be understood, claims nothing, or names no scope.

    """
    if isinstance(written, Guess):
        return written
    if isinstance(written, str | os.PathLike):
        return read_hunch(Path(written)).guess
    tables = [written] if isinstance(written, Mapping) else written
    if not isinstance(tables, Sequence) or not all(isinstance(table, Mapping) for table in tables):
        what = f"a guess cannot be {type(written).__name__}"
        raise GuessError(what, "", 'write {"kernels": 5}, or name a hunch.toml')
    claims = tuple(claim for table in tables for claim in _claims(table, scope))
    if not claims:
        raise GuessError("the guess claims nothing", "", 'claim something, as {"kernels": 5}')
    refuse_duplicates(claims, "the guess")
    return Guess(claims)


def _claims(table: Mapping[str, object], scope: str) -> tuple[Claim, ...]:
    named = table.get("scope", scope)
    if not isinstance(named, str) or not named:
        todo = 'add "scope": "NAME" (annotation, op, module, "step", or "*")'
        raise GuessError("the guess names no scope", "", todo)
    return claims_from_mapping(named, {key: value for key, value in table.items() if key != "scope"})
