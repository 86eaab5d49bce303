"""What is worse after than before: what a gate in CI fails on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.compare.collectives import collective_us
from tracehunch.compare.findings import SYMPTOMS
from tracehunch.compare.model import Regression
from tracehunch.compare.waiting import gain_us, waits_for_host
from tracehunch.units import printable, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.compare.model import FactChange, FindingChange, ScopeDiff
    from tracehunch.verdict import Finding, Severity

_SCOPES: Final = ("annotation", "step", "whole")
_NAME: Final = 80  # characters of a scope's name


def regressions_of(
    scopes: Sequence[ScopeDiff],
    new: Sequence[Finding],
    grown: Sequence[FindingChange],
    environment: EnvironmentDiff,
    *,
    host_compares: bool,
    same_rank: bool = True,
) -> tuple[Regression, ...]:
    """Return scopes that are slower beyond noise, and findings that are new or grew.

    Slower is a warning where times compare, else a note; a finding counts with its own severity. A GPU that
    waits more is only a note where the scope takes no longer for it.
    """
    found = [
        Regression(
            _severity(scope, fact, environment, host_compares=host_compares, same_rank=same_rank),
            _slower(scope, fact),
        )
        for scope, fact in _slower_scopes(scopes)
    ]
    found += _slower_periods(scopes, environment, host_compares=host_compares, told=bool(found))
    found += [_finding(f"new finding {one.id}", one, "", scopes) for one in new]
    grew = [one.after for one in grown if one.after is not None]
    found += [_finding(f"finding {one.id}", one, " grew", scopes) for one in grew]
    return tuple(found)


def _finding(what: str, finding: Finding, how: str, scopes: Sequence[ScopeDiff]) -> Regression:
    return Regression(_of_finding(finding, scopes), f"{what} in {printable(finding.scope, _NAME)}{how}")


def _of_finding(finding: Finding, scopes: Sequence[ScopeDiff]) -> Severity:
    """Return how bad a finding is as a regression."""
    if finding.id not in SYMPTOMS:
        return finding.severity
    inside = [scope for scope in scopes if scope.pair.after.scope.name == finding.scope] or scopes
    walls = [fact for scope in inside if (fact := scope.fact("wall_time")) is not None]
    return "note" if walls and all(wall.outcome != "more" for wall in walls) else finding.severity


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
    """GPU time; the scope's own duration where it is what people wait for, and longer than what they did."""
    for key in ("gpu_time", "wall_time"):
        fact = scope.fact(key)
        waited = waits_for_host(scope.pair.after) and gain_us(scope.pair) > 0
        if fact is not None and fact.outcome == "more" and (key == "gpu_time" or waited):
            yield fact


def _slower_periods(
    scopes: Sequence[ScopeDiff], environment: EnvironmentDiff, *, host_compares: bool, told: bool
) -> list[Regression]:
    """Return the scope whose calls follow each other more slowly, where nothing else tells that."""
    slower = [one for one in scopes if one.period is not None and one.period.outcome == "more"]
    if told or not slower:
        return []
    scope = max(slower, key=lambda one: one.period.delta_us if one.period is not None else 0.0)
    assert scope.period is not None
    times = f"{time_us(scope.period.before.value)} -> {time_us(scope.period.after.value)}"
    severity: Severity = "warning" if environment.times_compare and host_compares else "note"
    name = printable(scope.pair.name, _NAME)
    return [Regression(severity, f"{name} is slower: from one call to the next {times}")]


def _severity(
    scope: ScopeDiff,
    fact: FactChange,
    environment: EnvironmentDiff,
    *,
    host_compares: bool,
    same_rank: bool,
) -> Severity:
    compares = environment.times_compare and (host_compares or fact.key == "gpu_time")
    if fact.key == "gpu_time" and not same_rank:
        first, second = (collective_us(side) for side in (scope.pair.before, scope.pair.after))
        compares = compares and second - first < _by_how_much(fact) / 2  # else it waits for the other rank
    return "warning" if compares else "note"


def _by_how_much(fact: FactChange) -> float:
    first, second = (one.value if one is not None else 0.0 for one in (fact.before, fact.after))
    return second - first if isinstance(first, int | float) and isinstance(second, int | float) else 0.0


def _slower(scope: ScopeDiff, fact: FactChange) -> str:
    words = {"gpu_time": "GPU time", "wall_time": "wall time"}[fact.key]
    values = [one.value if one is not None else 0 for one in (fact.before, fact.after)]
    first, second = (time_us(float(one)) if isinstance(one, int | float) else "" for one in values)
    return f"{printable(scope.pair.name, _NAME)} is slower: {words} {first} -> {second} a call"
