"""One pair of scopes: its facts held against each other, and what changed in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tracehunch.compare.attention_causes import backend_of
from tracehunch.compare.causes import Scene, explained
from tracehunch.compare.changes import changes_of, without_doubt
from tracehunch.compare.matching import match_host, match_uses
from tracehunch.compare.model import Change, FactChange, ScopeDiff
from tracehunch.compare.noise import outcome_of
from tracehunch.compare.recording import is_real
from tracehunch.compare.rhythm import compare_times
from tracehunch.compare.sdpa_calls import compare_sdpa
from tracehunch.compare.waiting import gain_us, waits_for_host
from tracehunch.facts.vocabulary import KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.contents import Contents
    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.compare.model import ScopePair
    from tracehunch.tree import Tree
    from tracehunch.verdict import Finding

_HOST: Final = 20
"""Host changes kept for a scope."""

_HOST_SHARE: Final = 0.02
"""Part of the scope's time below which a change on the host is not worth a line."""


def diff_facts(pair: ScopePair) -> tuple[FactChange, ...]:
    """Hold all facts of two scopes against each other."""
    first, second = pair.before.facts, pair.after.facts
    calls = len(pair.before.scope.calls), len(pair.after.scope.calls)
    keys = [key for key in KEYS if key in first or key in second]
    return tuple(
        FactChange(
            key,
            KEYS[key].unit,
            first.get(key),
            second.get(key),
            outcome_of(first.get(key), second.get(key), calls),
        )
        for key in keys
    )


def diff_scope(
    pair: ScopePair,
    trees: tuple[Tree, Tree],
    sides: Sequence[Contents],
    *,
    findings: tuple[Sequence[Finding], Sequence[Finding]],
    environment: EnvironmentDiff,
    with_rhythm: bool,
) -> ScopeDiff:
    """Compare two scopes; ``sides`` are what they consist of, ``findings`` those gone, and the new ones.

    ``with_rhythm``: the time from one call to the next is told, too, which scopes inside one share with it.
    """
    on_gpu = all(environment.on_gpu)
    facts, key = diff_facts(pair), "gpu_time" if on_gpu else "wall_time"
    matches = match_uses(sides[0].uses, sides[1].uses)
    found = changes_of(matches, trees[0].trace, trees[1].trace, on_gpu=on_gpu)
    moved = next((fact for fact in facts if fact.key == key and fact.outcome in ("more", "less")), None)
    scene = _scene(pair, trees, sides, findings, environment)
    changes = tuple(explained(change, scene) for change in without_doubt(found, difference(moved)))
    made = ScopeDiff(pair=pair, facts=facts, changes=changes, time_key=key)
    return _timed(made, sides, trees, on_gpu=on_gpu, with_rhythm=with_rhythm)


def _scene(
    pair: ScopePair,
    trees: tuple[Tree, Tree],
    sides: Sequence[Contents],
    findings: tuple[Sequence[Finding], Sequence[Finding]],
    environment: EnvironmentDiff,
) -> Scene:
    """Put together what causes may rest on."""
    ops = sides[0].host, sides[1].host
    backends = backend_of(pair.before), backend_of(pair.after)
    return Scene(
        pair=pair,
        before=trees[0],
        after=trees[1],
        ops_before=ops[0],
        ops_after=ops[1],
        environment=environment,
        sdpa=compare_sdpa(trees, ops, backends),
        gone=findings[0],
        new=findings[1],
    )


def _timed(
    made: ScopeDiff, sides: Sequence[Contents], trees: tuple[Tree, Tree], *, on_gpu: bool, with_rhythm: bool
) -> ScopeDiff:
    """Add what the host did, and set the time that the scope is ranked by."""
    traces = trees[0].trace, trees[1].trace
    wall = difference(made.fact("wall_time"))
    comparable = not on_gpu or is_real(*traces, wall)
    host = _host_changes(made, sides, trees) if on_gpu and comparable else ()
    (period,) = compare_times(*([side.period] for side in sides))
    (outside,) = compare_times(*([side.outside] for side in sides))
    if period is not None and not (with_rhythm and is_real(*traces, period.delta_us)):
        period = None
    made = replace(made, host=host, period=period, outside=outside if comparable else None)
    return _ranked(made, None if comparable else ("gpu_time",))


def _host_changes(
    scope: ScopeDiff, sides: Sequence[Contents], trees: tuple[Tree, Tree]
) -> tuple[Change, ...]:
    """Return what the host spent more or less on, where its time changed beyond noise."""
    moved = [fact for key in ("wall_time", "cpu_time") if (fact := scope.fact(key)) is not None]
    if not any(fact.outcome in ("more", "less") for fact in moved):
        return ()
    wall = scope.pair.before.value("wall_time")
    least = _HOST_SHARE * wall if isinstance(wall, int | float) else 0.0
    matches = match_host(sides[0].host, sides[1].host)
    found = changes_of(matches, trees[0].trace, trees[1].trace, on_gpu=False)
    return tuple(one for one in found if not one.is_noise and abs(one.delta_us) >= least)[:_HOST]


def _ranked(scope: ScopeDiff, only: tuple[str, ...] | None) -> ScopeDiff:
    """Set the time that the scope is ranked by: what people wait for, on the host or on the GPU.

    ``only``: the times that may be. Where neither moved, or they contradict each other, that from one call to
    the next may have.
    """
    moved = {
        key: difference(fact)
        for key in only or _waited_for(scope)
        if (fact := scope.fact(key)) and fact.outcome in ("more", "less")
    }
    contradict = min(moved.values(), default=0.0) * max(moved.values(), default=0.0) < 0
    period = scope.period
    if (not moved or contradict) and period is not None and period.outcome in ("more", "less"):
        return replace(scope, time_key="period", delta_us=period.delta_us)
    if not moved:
        return scope
    key = next(iter(moved))
    return replace(scope, time_key=key, delta_us=moved[key])


def _waited_for(scope: ScopeDiff) -> tuple[str, str]:
    """Return wall time and GPU time, the one first that people wait for.

    Where they wait for another one after than before, it is the one that tells whether they gain: of both the
    one that moved more.
    """
    on_host = [waits_for_host(side) for side in (scope.pair.before, scope.pair.after)]
    if on_host[0] == on_host[1]:
        return ("wall_time", "gpu_time") if all(on_host) else ("gpu_time", "wall_time")
    gain = gain_us(scope.pair)
    wall, gpu = (difference(scope.fact(key)) * gain for key in ("wall_time", "gpu_time"))
    return ("wall_time", "gpu_time") if wall > gpu else ("gpu_time", "wall_time")


def difference(fact: FactChange | None) -> float:
    """By how much a number differs, after less before; 0 where a side does not tell."""
    if fact is None or fact.before is None or fact.after is None:
        return 0.0
    first, second = fact.before.value, fact.after.value
    if not isinstance(first, int | float) or not isinstance(second, int | float):
        return 0.0
    return round(second - first, 3)
