"""One pair of scopes: its facts held against each other, and what changed in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tracehunch.compare.attention_causes import fused_attention_steps
from tracehunch.compare.causes import Scene, explained
from tracehunch.compare.changes import changes_of
from tracehunch.compare.matching import match_host, match_uses
from tracehunch.compare.model import Change, FactChange, ScopeDiff
from tracehunch.compare.noise import outcome_of
from tracehunch.compare.recording import is_real
from tracehunch.compare.regressions import waits_for_host
from tracehunch.compare.sdpa_calls import compare_sdpa
from tracehunch.facts.vocabulary import KEYS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.compare.model import ScopePair, Use
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
    uses: tuple[Sequence[Use], Sequence[Use]],
    host: tuple[Sequence[Use], Sequence[Use]],
    *,
    findings: tuple[Sequence[Finding], Sequence[Finding]],
    environment: EnvironmentDiff,
) -> ScopeDiff:
    """Compare two scopes.

    ``uses`` are what they consist of: GPU activities, or ops where there are none; ``host`` ops and runtime
    calls; ``findings`` those that are gone, and the new ones.
    """
    facts = diff_facts(pair)
    on_gpu = all(environment.on_gpu)
    scene = Scene(
        pair=pair,
        before=trees[0],
        after=trees[1],
        ops_before=host[0],
        ops_after=host[1],
        environment=environment,
        sdpa=compare_sdpa((trees[0], host[0]), (trees[1], host[1])),
        gone=findings[0],
        new=findings[1],
    )
    matches = match_uses(*uses)
    found = changes_of(matches, trees[0].trace, trees[1].trace, on_gpu=on_gpu)
    changes = [explained(change, scene) for change in found]
    made = ScopeDiff(
        pair=pair,
        facts=facts,
        changes=tuple(_with_steps(change, scene) for change in changes),
        time_key="gpu_time" if on_gpu else "wall_time",
    )
    wall = difference(made.fact("wall_time"))
    comparable = not on_gpu or is_real(trees[0].trace, trees[1].trace, wall)
    host_changes = _host_changes(made, host, trees) if on_gpu and comparable else ()
    return _timed(made, host_changes, None if comparable else ("gpu_time",))


def _with_steps(change: Change, scene: Scene) -> Change:
    return replace(change, causes=(*change.causes, *fused_attention_steps(change, scene)))


def _host_changes(
    scope: ScopeDiff, host: tuple[Sequence[Use], Sequence[Use]], trees: tuple[Tree, Tree]
) -> tuple[Change, ...]:
    """Return what the host spent more or less on, where its time changed beyond noise."""
    moved = [fact for key in ("wall_time", "cpu_time") if (fact := scope.fact(key)) is not None]
    if not any(fact.outcome in ("more", "less") for fact in moved):
        return ()
    wall = scope.pair.before.value("wall_time")
    least = _HOST_SHARE * wall if isinstance(wall, int | float) else 0.0
    found = changes_of(match_host(*host), trees[0].trace, trees[1].trace, on_gpu=False)
    return tuple(one for one in found if not one.is_noise and abs(one.delta_us) >= least)[:_HOST]


def _timed(scope: ScopeDiff, host: tuple[Change, ...], only: tuple[str, ...] | None) -> ScopeDiff:
    """Set the time that the scope is ranked by: the host's where that moved and is what people wait for.

    ``only``: the times that may be.
    """
    usual = ("wall_time", "gpu_time") if waits_for_host(scope.pair.after) else ("gpu_time", "wall_time")
    keys = only or usual
    moved = [key for key in keys if (fact := scope.fact(key)) and fact.outcome in ("more", "less")]
    key = moved[0] if moved else scope.time_key
    delta = difference(scope.fact(key)) if moved else 0.0
    return replace(scope, host=host, time_key=key, delta_us=delta)


def difference(fact: FactChange | None) -> float:
    """By how much a number differs, after less before; 0 where a side does not tell."""
    if fact is None or fact.before is None or fact.after is None:
        return 0.0
    first, second = fact.before.value, fact.after.value
    if not isinstance(first, int | float) or not isinstance(second, int | float):
        return 0.0
    return round(second - first, 3)
