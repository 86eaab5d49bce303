"""Foreseen findings as a hunch.toml knows them: no news where a trace shows them."""

from collections.abc import Iterator
from typing import Final

from tracehunch.guess.write import writable
from tracehunch.predict.program.model import Foreseen, ProgramGuess
from tracehunch.units import count

_BY_OP: Final = ("hidden-copy", "layout-copy", "dtype-round-trip", "sync-stall")
"""Findings that a trace names by the same op, as often a call; of the others all of a scope are known."""
_ALIASES: Final = {"aten::_local_scalar_dense": ("aten::item", "aten::is_nonzero")}
"""Ops that a trace names by what calls them."""


def known_of(guess: ProgramGuess, scope: str) -> tuple[str, ...]:
    """Return what `check` is to know, each once, sorted; `scope` is what a run is called in the trace.

    A trace lays a finding to the innermost annotation around it, hence there is one for each of these, too.
    """
    scopes = dict.fromkeys((scope, *(name for one in guess.calls for name in one.call.scopes)))
    found = {
        f"{what} in {name}{rest}"
        for one in (*guess.findings, *guess.smaller)
        for what, rest in _named(one)
        for name in scopes
    }
    return tuple(sorted(filter(writable, found)))


def _named(one: Foreseen) -> Iterator[tuple[str, str]]:
    if one.id not in _BY_OP or not one.subject:
        yield one.id, ""
        return
    for subject in (one.subject, *_ALIASES.get(one.subject, ())):
        yield one.id, f": {subject} x{count(one.count)}"
