"""What a reader of a comparison should know first: what became slower or faster, by which time, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.compare.collectives import collective_us
from tracehunch.compare.recording import host_compares
from tracehunch.report.diff_words import (
    DETAILED,
    SCOPE_NAME,
    period_text,
    relative,
    scope_name,
    signed_time,
    times_text,
    wall_compares,
)
from tracehunch.units import elide, join, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.model import Diff, ScopeDiff
    from tracehunch.verdict import Finding

_SCOPES: Final = 3
_MOST: Final = 0.5
"""Share of a scope's gain or loss from which on one thing explains it."""

_AGAINST: Final = "but "  # before a time that went the other way
_TIMES: Final = {"gpu_time": "GPU time", "wall_time": "wall time"}


def headline(diff: Diff) -> list[tuple[str, tuple[str, ...]]]:
    """Return which scopes became slower or faster, each with what explains it; or that nothing did."""
    chosen = [scope for scope in diff.scopes if scope.pair.after.scope.kind in DETAILED]
    moved = [scope for scope in chosen if scope.delta_us]
    annotated = [scope for scope in moved if scope.pair.after.scope.kind == "annotation"] or moved
    if annotated:
        return [(_moved(diff, scope), _reasons(diff, scope)) for scope in annotated[:_SCOPES]]
    return [(_still(diff, chosen) if chosen else "There is nothing to compare.", ())]


def _still(diff: Diff, chosen: Sequence[ScopeDiff]) -> str:
    """Say that no scope moved; and what is new all the same."""
    alike = host_compares(diff.before.facts.tree.trace, diff.after.facts.tree.trace)
    what = "the same kernels" if all(diff.environment.on_gpu) else "the same ops"
    if any(scope.changes for scope in chosen):
        whose = "No scope" if alike else "As far as times compare, no scope"
        text = f"{whose} became slower or faster beyond noise; what it runs changed."
    else:
        text = f"Nothing differs beyond noise: {what}, as often, in the same time."
    new = [f"{one.id}{_stake(one)}" for one in diff.new if one.severity != "note"]
    return f"{text} But there is a new finding: {join(new)}." if new else text


def _moved(diff: Diff, scope: ScopeDiff) -> str:
    """``attn_fwd is faster, per call: GPU time 1,063.5 -> 938.1 us (-12%)``."""
    how = "slower" if scope.delta_us > 0 else "faster"
    parts = [text for key in _keys(diff, scope) if (text := _time_text(scope, key))]
    parts.sort(key=lambda text: text.startswith(_AGAINST))
    beware = "" if diff.environment.times_compare else "; times do not compare"
    each = "" if scope.time_key == "period" else ", per call"
    return f"{scope_name(scope)} is {how}{each}: {'; '.join(parts)}{beware}"


def _reasons(diff: Diff, scope: ScopeDiff) -> tuple[str, ...]:
    return tuple(why for why in (_waiting(scope), _finding(diff, scope)) if why)


def _keys(diff: Diff, scope: ScopeDiff) -> list[str]:
    """Return the times to tell, the one that the scope is ranked by first."""
    told = ["gpu_time", "wall_time"] if wall_compares(diff, scope) else ["gpu_time"]
    return list(dict.fromkeys((scope.time_key, *told)))


def _time_text(scope: ScopeDiff, key: str) -> str:
    """``GPU time 1.064 ms -> 938.1 us (-12%)``; "" where a side does not tell it."""
    if key == "period" and scope.period is not None:
        return period_text(scope.period)
    fact = scope.fact(key)
    if fact is None or fact.before is None or fact.after is None:
        return ""
    values = fact.before.value, fact.after.value
    if not isinstance(values[0], int | float) or not isinstance(values[1], int | float):
        return ""
    if fact.outcome in ("same", "noise"):
        return f"{_TIMES[key]} the same within noise"
    against = (fact.outcome == "more") != (scope.delta_us > 0)
    text = f"{_TIMES[key]} {times_text(values[0], values[1])} ({relative(values[0], values[1])})"
    return f"{_AGAINST}{text}" if against else text


def _waiting(scope: ScopeDiff) -> str:
    """Say that GPU time differs by the wait for another rank."""
    first, second = (collective_us(side) for side in (scope.pair.before, scope.pair.after))
    delta = second - first
    if (
        scope.time_key != "gpu_time"
        or delta * scope.delta_us <= 0
        or abs(delta) < _MOST * abs(scope.delta_us)
    ):
        return ""
    return f"{signed_time(delta)} of it in collectives, whose time holds the wait for the slowest rank"


def _finding(diff: Diff, scope: ScopeDiff) -> str:
    """Name the finding that most of the host's gain or loss goes back to."""
    if scope.time_key == "gpu_time":
        return ""
    slower = scope.delta_us > 0
    side = scope.pair.after if slower else scope.pair.before
    grown = [one.after for one in diff.grown if one.after is not None]
    found = [*diff.new, *grown] if slower else diff.gone
    least = _MOST * abs(scope.delta_us)
    there = [one for one in found if one.scope == side.scope.name and one.time_at_stake_us >= least]
    if not there:
        return ""
    most = max(there, key=lambda one: one.time_at_stake_us)
    return f"most of it: {'new' if slower else 'gone'} finding {most.id}, {printable(most.summary)}"


def _stake(finding: Finding) -> str:
    stake = f", {time_us(finding.time_at_stake_us)} a call" if finding.time_at_stake_us else ""
    return f" in {elide(printable(finding.scope), SCOPE_NAME)}{stake}"
