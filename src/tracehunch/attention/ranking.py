"""Which variant is fastest, and whether the forwards that were timed can tell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.trace.model import UNKNOWN_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.outcome import Outcome
    from tracehunch.trace.model import Int64
    from tracehunch.tree import Call, Tree

_MANY: Final = 8
"""Forwards from which on the middle half of them is compared: one of many is held up now and then."""

_ALIKE: Final = 1.05
"""Medians that differ by less are alike; clocks and caches alone move them so far."""

_UNSTEADY: Final = 1.5
"""Upper over lower end of a variant's range from which on its median says little."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The variants that did the same work on the same device, fastest median first.

    ``leading`` are the best and those that the timed forwards cannot tell from it. ``noisy``: these would
    stand in an order, were the medians believed, or the best itself is unsteady.
    """

    order: tuple[Outcome, ...]
    leading: tuple[Outcome, ...]
    noisy: bool

    @property
    def undecided(self) -> tuple[Outcome, ...]:
        """The variants whose place is not certain."""
        return self.leading if self.noisy else ()

    @property
    def widest(self) -> float:
        """By how much the forwards of an undecided variant differ at most: longest over shortest."""
        return max((spread(forward_times_us(one)) for one in self.leading), default=1.0)


def rank(outcomes: Sequence[Outcome]) -> Ranking:
    """Rank variants that did the same work on the same device; those that were not timed are left out."""
    order = tuple(sorted((one for one in outcomes if one.time_us), key=lambda one: one.time_us or 0.0))
    if not order:
        return Ranking((), (), noisy=False)
    ranges = {one.variant.name: _range(forward_times_us(one)) for one in order}
    best = order[0]
    reach = ranges[best.variant.name][1]
    leading = tuple(
        one for one in order if _ratio(one, best) < _ALIKE or ranges[one.variant.name][0] <= reach
    )
    low, high = ranges[best.variant.name]
    apart = any(_ratio(one, best) >= _ALIKE for one in leading)
    noisy = len(leading) > 1 and (apart or high > _UNSTEADY * low)
    return Ranking(order, leading, noisy)


def forward_times_us(outcome: Outcome) -> tuple[float, ...]:
    """Give the time of each forward: on a GPU the sum of its activities, on a CPU the time inside its ops."""
    scope = outcome.scope
    if scope is None or outcome.look is None:
        return ()
    tree, on_gpu = outcome.look.facts.tree, outcome.device.kind == "cuda"
    return tuple(_sum_us(call.gpu if on_gpu else _outermost(call, tree), tree) for call in scope.scope.calls)


def spread(times_us: Sequence[float]) -> float:
    """Longest over shortest; 1 where there is nothing to compare."""
    return max(times_us) / min(times_us) if times_us and min(times_us) > 0 else 1.0


def _outermost(call: Call, tree: Tree) -> Int64:
    inside = np.isin(tree.op[np.maximum(tree.parent[call.ops], 0)], call.ops) & (tree.parent[call.ops] >= 0)
    rows: Int64 = call.ops[~inside]
    return rows


def _sum_us(rows: Int64, tree: Tree) -> float:
    durations = tree.trace.dur_ns[rows]
    return float(durations[durations != UNKNOWN_NS].sum()) / 1e3


def _range(times_us: Sequence[float]) -> tuple[float, float]:
    """Where a variant's forwards lie: all of few, the middle half of many."""
    if not times_us:
        return 0.0, 0.0
    low, high = np.quantile(times_us, (0.25, 0.75) if len(times_us) >= _MANY else (0.0, 1.0))
    return float(low), float(high)


def _ratio(one: Outcome, best: Outcome) -> float:
    return (one.time_us or 0.0) / (best.time_us or 1.0)
