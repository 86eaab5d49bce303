"""What is worse after than before: what a gate in CI fails on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.compare.model import Regression
from tracehunch.units import printable, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.compare.model import FactChange, FindingChange, ScopeDiff
    from tracehunch.facts.model import ScopeFacts
    from tracehunch.verdict import Finding, Severity

_SCOPES = ("annotation", "step", "whole")


def regressions_of(
    scopes: Sequence[ScopeDiff],
    new: Sequence[Finding],
    grown: Sequence[FindingChange],
    environment: EnvironmentDiff,
    *,
    host_compares: bool,
) -> tuple[Regression, ...]:
    """Return scopes that are slower beyond noise, and findings that are new or grew.

    Slower is a warning where times compare, else a note; a finding counts with its own severity.
    """
    found = [
        Regression(_severity(fact, environment, host_compares=host_compares), _slower(scope, fact))
        for scope, fact in _slower_scopes(scopes)
    ]
    found += [Regression(one.severity, f"new finding {one.id} in {printable(one.scope)}") for one in new]
    found += [
        Regression(one.after.severity, f"finding {one.after.id} in {printable(one.after.scope)} grew")
        for one in grown
        if one.after is not None
    ]
    return tuple(found)


def _slower_scopes(scopes: Sequence[ScopeDiff]) -> list[tuple[ScopeDiff, FactChange]]:
    """Return scopes with the time that grew; steps and the whole only where no annotation tells the same."""
    found = [
        (scope, fact)
        for scope in scopes
        if scope.pair.after.scope.kind in _SCOPES
        for fact in _slower_facts(scope)
    ]
    told = {fact.key for scope, fact in found if scope.pair.after.scope.kind == "annotation"}
    return [
        (scope, fact)
        for scope, fact in found
        if scope.pair.after.scope.kind == "annotation" or fact.key not in told
    ]


def _slower_facts(scope: ScopeDiff) -> Iterator[FactChange]:
    """GPU time; the scope's own duration where the GPU does not outlast it."""
    for key in ("gpu_time", "wall_time"):
        fact = scope.fact(key)
        if (
            fact is not None
            and fact.outcome == "more"
            and (key == "gpu_time" or waits_for_host(scope.pair.after))
        ):
            yield fact


def waits_for_host(scope: ScopeFacts) -> bool:
    """Whether the host takes longer than the GPU, so that its time is what people wait for."""
    wall, busy = (scope.value(key) for key in ("wall_time", "gpu_busy"))
    if not isinstance(wall, int | float):
        return False
    return not isinstance(busy, int | float) or wall > busy


def _severity(fact: FactChange, environment: EnvironmentDiff, *, host_compares: bool) -> Severity:
    compares = environment.times_compare and (host_compares or fact.key == "gpu_time")
    return "warning" if compares else "note"


def _slower(scope: ScopeDiff, fact: FactChange) -> str:
    words = {"gpu_time": "GPU time", "wall_time": "wall time"}[fact.key]
    values = [one.value if one is not None else 0 for one in (fact.before, fact.after)]
    first, second = (time_us(float(one)) if isinstance(one, int | float) else "" for one in values)
    return f"{printable(scope.pair.name)} is slower: {words} {first} -> {second} a call"
