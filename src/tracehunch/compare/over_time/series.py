"""The calls of one scope over all cycles of a run, in order: the series that tests look at.

A scope that is called equally often in every step (attention in every layer) is looked at step by step: its
calls differ among themselves, and that is no drift.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.over_time.alone import steady_us, total_us
from tracehunch.compare.over_time.calls import ALONE
from tracehunch.compare.over_time.model import Place
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from tracehunch.compare.over_time.model import Cycle, ScopeCalls
    from tracehunch.trace.model import Float64, Int64

CALLS: Final = "calls"
"""How often a scope is called in a step: a fact of its own here."""

_WARM: Final = 4  # points from which on the first may be left out
_FULL: Final = 3  # points of a cycle from which on its first may be left out
_ALWAYS: Final = 0.8  # share of the cycles whose first (last) differs, so that the profiler is why


@dataclass(frozen=True, slots=True)
class Points:
    """Points in time of one scope: calls, or steps with ``per_point`` calls each."""

    name: str
    kind: str
    cycle: Int64
    call: Int64  # the first of the point, from 1
    step: Int64
    start_ns: Int64
    end_ns: Int64
    per_point: int
    numbers: Mapping[str, Float64]
    words: Mapping[str, Sequence[Hashable]]  # None: not known
    alone_us: Mapping[str, Float64] = field(default_factory=dict)  # kernel -> the part of ALONE that is its

    def __len__(self) -> int:
        return self.cycle.size

    @property
    def numbering(self) -> Int64:
        """Numbers of the points that patterns are looked for in: of steps if they rise, else of calls."""
        return self.step if self.by_step else np.arange(len(self), dtype=np.int64)

    @property
    def by_step(self) -> bool:
        """Whether the numbers of steps rise from point to point."""
        return bool(self.step.size and self.step[0] != ABSENT and (np.diff(self.step) > 0).all())

    def place(self, at: int) -> Place:
        """Return where a point is."""
        step = int(self.step[at])
        return Place(
            int(self.cycle[at]), int(self.call[at]), None if step == ABSENT else step, int(self.start_ns[at])
        )


def points_of(cycles: Sequence[Cycle]) -> list[Points]:
    """Return the points of every scope, those of most calls' time last; scopes by first appearance."""
    names = dict.fromkeys(name for cycle in cycles for name in cycle.scopes)
    return [
        _points(name, [(at, c.scopes[name]) for at, c in enumerate(cycles) if name in c.scopes])
        for name in names
    ]


def _points(name: str, parts: Sequence[tuple[int, ScopeCalls]]) -> Points:
    cycle = np.concatenate([np.full(len(one), at, dtype=np.int64) for at, one in parts])
    step = np.concatenate([one.step for _, one in parts])
    start = np.concatenate([one.start_ns for _, one in parts])
    end = np.concatenate([one.end_ns for _, one in parts])
    group, per_point, per_step = _grouped(parts[0][1].kind, cycle, step)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    numbers = {key: _mean(_joined(key, parts), group, per_point) for key in _keys(parts)}
    if per_step is not None:
        numbers[CALLS] = per_step.astype(np.float64)
    steady = steady_us([one for _, one in parts])
    alone = {name: _mean(times, group, per_point) for name, times in (steady or {}).items()}
    if steady is not None:
        numbers[ALONE] = total_us(alone, first.size)
    word_keys = dict.fromkeys(key for _, one in parts for key in one.words)
    words = {key: _texts(key, parts, group) for key in word_keys}
    last = np.append(first[1:], cycle.size) - 1
    return Points(
        name, parts[0][1].kind, cycle[first], first + 1, step[first], start[first], end[last], per_point,
        numbers, words, alone,
    )  # fmt: skip


def _keys(parts: Sequence[tuple[int, ScopeCalls]]) -> list[str]:
    return list(dict.fromkeys(key for _, one in parts for key in one.values))


def _joined(key: str, parts: Sequence[tuple[int, ScopeCalls]]) -> Float64:
    """Return a key's values over all cycles; what a file without compiled code does not have is 0 there."""
    missing = 0.0 if key.startswith("compiled") else np.nan
    return np.concatenate(
        [one.values[key] if key in one.values else np.full(len(one), missing) for _, one in parts]
    )


def _grouped(kind: str, cycle: Int64, step: Int64) -> tuple[Int64, int, Int64 | None]:
    """Return the point of each call, calls a point, and per point the calls of its step if known."""
    alone = np.arange(cycle.size, dtype=np.int64)
    if kind in ("step", "whole") or (step == ABSENT).any():
        return alone, 1, None
    new = (np.diff(cycle, prepend=-1) != 0) | (np.diff(step, prepend=ABSENT - 1) != 0)
    of_step = np.cumsum(new) - 1
    n = np.bincount(of_step)
    if n.size and n.min() == n.max():
        return of_step, int(n[0]), n
    middle = int(np.median(n))
    if middle > 1 and n.size >= _WARM:
        return of_step, 0, n  # 0: calls a step differ
    return alone, 1, None


def _mean(values: Float64, group: Int64, per_point: int) -> Float64:
    if per_point == 1:
        return values
    n = np.bincount(group)
    return np.asarray(np.bincount(group, weights=values) / n)


def _texts(key: str, parts: Sequence[tuple[int, ScopeCalls]], group: Int64) -> list[Hashable]:
    """Return per point the texts of its calls: as one where they agree, else the set of them."""
    found: list[set[Hashable]] = [set() for _ in range(int(group[-1]) + 1 if group.size else 0)]
    at = 0
    for _, one in parts:
        of_calls = one.words.get(key, (None,) * len(one))
        for value in of_calls:
            found[int(group[at])].add(frozenset(value) if isinstance(value, tuple) else value)
            at += 1
    return [next(iter(one)) if len(one) == 1 else _together(one) for one in found]


def _together(values: set[Hashable]) -> Hashable:
    """Return all texts of a point's calls as one set; of calls that do not tell nothing is said."""
    flat: set[Hashable] = set()
    for one in values - {None}:
        flat |= set(one) if isinstance(one, frozenset) else {one}
    return next(iter(flat)) if len(flat) == 1 else frozenset(flat)


def known(values: Sequence[Hashable] | Float64) -> Int64:
    """Return the positions whose value is known."""
    if isinstance(values, np.ndarray):
        return np.flatnonzero(~np.isnan(values))
    return np.flatnonzero(np.array([one is not None for one in values], dtype=bool))


def settled(at: Int64, cycle: Int64) -> Int64:
    """Return the points of ``at`` without the first of the run, and of each cycle where it has a few more.

    A first call warms up; the first after the profiler was switched on pays for that.
    """
    if at.size < _WARM:
        return at
    first = np.diff(cycle[at], prepend=-1) != 0
    n = np.diff(np.append(np.flatnonzero(first), at.size))
    if n.min() < _FULL:
        first[1:] = False
    return np.asarray(at[~first])


def settled_exactly(at: Int64, cycle: Int64, values: Sequence[Hashable]) -> Int64:
    """Return the same for exact values: a first or last call of a cycle is left out only if all differ so.

    The first of the run is, if it differs from the second: else it shows no warm-up.
    """
    if at.size < _WARM:
        return at
    first = np.diff(cycle[at], prepend=-1) != 0
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], at.size) - 1
    drop = np.zeros(at.size, dtype=bool)
    drop[0] = values[int(at[0])] != values[int(at[1])]
    if starts.size > 1 and (ends - starts >= _FULL - 1).all():
        for edge, beside in ((starts, starts + 1), (ends, ends - 1)):
            other = [
                values[one] != values[two]
                for one, two in zip(at[edge].tolist(), at[beside].tolist(), strict=True)
            ]
            if np.mean(other) >= _ALWAYS:
                drop[edge] = True
    return np.asarray(at[~drop])
