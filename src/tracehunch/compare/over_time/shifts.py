"""Drifts -> shifts: what changed at one moment is one thing, told of the scope where it happens.

An attention that becomes slower makes its layer, the forward pass and the step slower: all of these changed,
and the innermost scope says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.over_time.calls import ALONE, KEPT, NAMES
from tracehunch.compare.over_time.drift import TIMES
from tracehunch.compare.over_time.levels import share_of
from tracehunch.compare.over_time.model import COMPUTE, Drift, Kind, Level, Place, Shift
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracehunch.compare.over_time.series import Points
    from tracehunch.verdict import Severity

_COVERED: Final = 0.5
"""Share of the cost of a scope around another from which on the inner one accounts for it."""
_WIDER: Final = 1.5
"""Calls by which the place of a change of noisy values may be off."""
_BUSY: Final = 0.5
"""Idle share of the GPU below which a longer GPU time is a longer run."""
_ORDER: Final = ("sdpa.backend", "dtype", "kernels", "copies", "leaf_ops", "compiled.recompiles", *TIMES)


@dataclass(frozen=True, slots=True)
class Moment:
    """One change of one fact: its levels, and the time within which it came."""

    drift: Drift
    before: Level
    after: Level
    place: Place | None
    low_ns: int
    high_ns: int

    @property
    def is_exact(self) -> bool:
        """Whether the place is exact: that of a count or a text."""
        return self.drift.key not in TIMES


@dataclass(frozen=True, slots=True)
class _Around:
    """A scope around another that shows the same change."""

    scope: str
    moments: Sequence[Moment]


_Told = tuple[str, list[Moment], list[_Around]]


def shifts_of(drifts: Sequence[Drift], scopes: Mapping[str, Points]) -> list[Shift]:
    """Return what changed, one shift for what belongs together."""
    found: list[Shift] = []
    steps = [moment for drift in drifts if drift.kind == "step" for moment in _moments(drift, scopes)]
    for group in _at_once(steps):
        found += _by_scope("step", group, scopes)
    for kind in ("trend", "turns"):
        some = [_whole(drift) for drift in drifts if drift.kind == kind]
        groups: dict[int | None, list[Moment]] = {}
        for moment in some:
            groups.setdefault(moment.drift.every, []).append(moment)
        for group in groups.values():
            found += _by_scope(kind, group, scopes)
    return found


def _moments(drift: Drift, scopes: Mapping[str, Points]) -> Iterator[Moment]:
    points = scopes[drift.scope]
    length = float(np.median(points.end_ns - points.start_ns))
    wider = int(_WIDER * length) if drift.key in TIMES else 0
    for at, place in enumerate(drift.at[: len(drift.levels) - 1]):
        before, after = drift.levels[at], drift.levels[at + 1]
        yield Moment(drift, before, after, place, before.last.start_ns - wider, place.start_ns + wider)


def _whole(drift: Drift) -> Moment:
    first, last = drift.levels[0], drift.levels[-1]
    return Moment(drift, first, last, None, first.first.start_ns, last.last.start_ns)


def _at_once(moments: Sequence[Moment]) -> list[list[Moment]]:
    """Group moments whose times overlap; exact ones say where a group is."""
    groups: list[list[Moment]] = []
    for moment in sorted(moments, key=lambda one: (not one.is_exact, one.high_ns - one.low_ns, one.high_ns)):
        mine = next(
            (
                group
                for group in groups
                if group[0].low_ns <= moment.high_ns and moment.low_ns <= group[0].high_ns
            ),
            None,
        )
        if mine is None:
            groups.append([moment])
        else:
            mine.append(moment)
    return sorted(groups, key=lambda group: group[0].high_ns)


def _by_scope(kind: Kind, group: Sequence[Moment], scopes: Mapping[str, Points]) -> Iterator[Shift]:
    """Yield a shift for each scope that does not merely surround one that tells the same."""
    by_scope: dict[str, list[Moment]] = {}
    for moment in group:
        by_scope.setdefault(moment.drift.scope, []).append(moment)
    told: list[_Told] = []
    for name in sorted(by_scope, key=lambda name: _length(scopes[name])):
        moments = by_scope[name]
        inner = [one for one in told if _surrounds(scopes[name], scopes[one[0]], one[1])]
        costs = [_cost(one[1]) * max(scopes[one[0]].per_point, 1) for one in inner]
        covered = sum(costs) >= _COVERED * _cost(moments)
        if inner and (_shows_all(moments, inner) or (covered and _shows_any(inner))):
            inner[-1][2].append(_Around(name, moments))
        else:
            told.append((name, moments, []))
    for _, moments, also in told:
        if _told_cost(moments) is None and not any(one.is_exact for one in moments):
            continue  # a part of a call's time moved, and the call takes what it took
        yield _shift(kind, scopes, moments, also)


def _shows_all(moments: Sequence[Moment], inner: Sequence[_Told]) -> bool:
    """Tell whether inner scopes show every exact fact that changed, and there are some."""
    mine = {one.drift.key for one in moments if one.is_exact}
    return bool(mine) and mine <= _exact_keys(inner)


def _shows_any(inner: Sequence[_Told]) -> bool:
    return bool(_exact_keys(inner)) or all(_cost(moments) for _, moments, _ in inner)


def _exact_keys(inner: Sequence[_Told]) -> set[str]:
    return {one.drift.key for _, moments, _ in inner for one in moments if one.is_exact}


def _length(points: Points) -> tuple[float, bool]:
    """Sort key: the shortest first, of the same length a step last."""
    return float(np.median(points.end_ns - points.start_ns)), points.kind == "step"


def _surrounds(outer: Points, inner: Points, moments: Sequence[Moment]) -> bool:
    """Tell whether the calls of one scope at the change lie in calls of the other."""
    place = moments[0].place or moments[0].after.first
    at = int(np.searchsorted(outer.start_ns, place.start_ns, "right")) - 1
    return at >= 0 and place.start_ns < int(outer.end_ns[at]) and outer.name != inner.name


def _delta(moment: Moment) -> float:
    first, later = moment.before.value, moment.after.value
    if isinstance(first, int | float) and isinstance(later, int | float):
        return float(later) - float(first)
    return 0.0


def _told_cost(moments: Sequence[Moment]) -> float | None:
    """Return how much longer a call takes: on the host, else on the GPU; None where no time changed."""
    by_key = {one.drift.key: _delta(one) for one in moments}
    for key in ("wall_time", "gpu_time", COMPUTE, ALONE):
        if key in by_key:
            return round(by_key[key], 3)
    return None


def _cost(moments: Sequence[Moment]) -> float:
    return abs(_told_cost(moments) or 0.0)


def _shift(
    kind: Kind, scopes: Mapping[str, Points], moments: Sequence[Moment], around: Sequence[_Around]
) -> Shift:
    points = scopes[moments[0].drift.scope]
    ordered = sorted(moments, key=lambda one: _rank(one.drift.key))
    exact = [one for one in ordered if one.is_exact and one.place is not None]
    places = [one.place for one in (exact or ordered) if one.place is not None]
    of_scopes = [(points, moments), *((scopes[one.scope], one.moments) for one in around)]
    worst = max((_severity(kind, *one) for one in of_scopes), key=SEVERITIES.index)
    return Shift(
        scope=points.name,
        kind=kind,
        drifts=tuple(_one_change(one) for one in ordered),
        place=min(places, key=lambda place: place.start_ns) if places else None,
        cost_us=_told_cost(moments),
        severity=worst,
        also=tuple((one.scope, _told_cost(one.moments)) for one in around),
    )


def _one_change(moment: Moment) -> Drift:
    """Return the drift with this one of its changes only."""
    drift = moment.drift
    if drift.kind != "step" or len(drift.levels) == 2:
        return drift
    levels = moment.before, moment.after
    at = (moment.place,) if moment.place else ()
    return replace(drift, levels=levels, at=at, share=share_of(levels))


def _rank(key: str) -> int:
    if key == NAMES:
        return len(_ORDER)
    return _ORDER.index(key) if key in _ORDER else len(_ORDER) - len(TIMES)


def _severity(kind: Kind, points: Points, moments: Sequence[Moment]) -> Severity:
    """Return a warning where calls take longer, or memory is not given back; else a note."""
    cost = _told_cost(moments)
    keys = {one.drift.key for one in moments}
    if KEPT in keys and kind == "trend":
        return "warning"
    if kind == "turns" or cost is None or cost <= 0:
        return "note"
    if "wall_time" in keys:
        return "warning"
    idle = points.numbers.get("gpu_idle")
    if COMPUTE in points.numbers or idle is None or np.isnan(idle).all():
        return "note"  # what collectives wait hides whether the GPU is the limit
    return "warning" if float(np.nanmedian(idle[-max(len(points) // 2, 1) :])) < _BUSY else "note"
