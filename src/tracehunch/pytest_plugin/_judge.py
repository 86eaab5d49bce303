"""Hold profiles against claims, and say which way it came out: what broke, and what could not be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.guess.scopes import scopes_named
from tracehunch.report.verdict_text import explained_text, surprise_text
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.pytest_plugin._claims import MarkerClaims
    from tracehunch.verdict import CannotTell, Look, Surprise, Verdict

FAILING: Final = ("warning", "error")
"""Severities that fail a test, as ``tracehunch check`` has it."""

_NO_GPU: Final = "no GPU activity was recorded"
_OPTIONS: Final = {
    "record_shapes=True": "shapes=True",
    "profile_memory=True": "memory=True",
    "with_stack=True": "stacks=True",
}
"""Option of the profiler -> the marker's."""


@dataclass(frozen=True, slots=True)
class Untold:
    """A claim that could not be told, and why."""

    key: str
    scope: str
    reason: str

    def __str__(self) -> str:
        return f"cannot tell {self.key} in {printable(self.scope)}: {printable(self.reason)}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What claims came to: texts of what broke, what could not be told, and how many could be."""

    broken: tuple[str, ...] = ()
    untold: tuple[Untold, ...] = ()
    told: int = 0

    def and_then(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(self.broken + other.broken, self.untold + other.untold, self.told + other.told)


def outcome_of(verdict: Verdict, look: Look) -> Outcome:
    """Sort a verdict: a scope that is not there breaks its claims, as nothing else would ever say so."""
    missing = [one for one in verdict.cannot_tell if not scopes_named(one.scope, look.facts)]
    failing = [one for one in verdict.surprises if one.severity in FAILING]
    return Outcome(
        broken=(*map(_surprise_text, failing), *(str(untold_of(one)) for one in missing)),
        untold=tuple(untold_of(one) for one in verdict.cannot_tell if one not in missing),
        told=len(verdict.held) + len(verdict.surprises),
    )


def untold_of(unknown: CannotTell) -> Untold:
    """Return why a claim could not be told; what to do about it is an option of the marker."""
    if unknown.reason == _NO_GPU:
        return Untold(unknown.key, unknown.scope, "it ran on no GPU")
    option = _OPTIONS.get(unknown.record_with)
    todo = f"; record with @pytest.mark.tracehunch({option})" if option else ""
    return Untold(unknown.key, unknown.scope, unknown.reason + todo)


def about(marker: MarkerClaims, looks: Sequence[Look]) -> list[bool]:
    """Tell for each profile of a test whether a marker's claims are about it: all of them if it has no scope.

    A scope that none of them has is looked for, in vain, in the first.
    """
    if marker.scope is None:
        return [True] * len(looks)
    found = [bool(scopes_named(marker.scope, look.facts)) for look in looks]
    return found if any(found) else [True, *found[1:]]


def _surprise_text(surprise: Surprise) -> str:
    claim = surprise.claim
    where = f"{claim.key} in {printable(claim.scope)}"
    return f"{where}: {surprise_text(surprise).replace(' (user)', '')}; {explained_text(surprise)}"
