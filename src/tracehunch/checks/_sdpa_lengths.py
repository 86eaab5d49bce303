"""Sequence lengths that vary from call to call under cuDNN, which builds a plan for each new one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from tracehunch.checks import cpu_plan_cost
from tracehunch.checks._scopes import Placement
from tracehunch.facts.model import Facts, ScopeFacts
from tracehunch.predict.traced import Explained
from tracehunch.trace.model import Int64

_FEWEST: Final = 3
"""Lengths that count as varying: two may be an encoder and a decoder."""


@dataclass(frozen=True, slots=True)
class Length:
    """Queries and keys of one call, and its time on the host."""

    sizes: tuple[int, int]
    host_us: float


@dataclass(frozen=True, slots=True)
class Varying:
    """Calls of one scope with their different (queries, keys), and the median time of one on the host."""

    scope: ScopeFacts
    rows: Int64
    lengths: tuple[tuple[int, int], ...]
    host_us: float


def lengths_under_cudnn(explained: Explained) -> dict[int, Length]:
    """Return (queries, keys) and host time of calls by row; nothing where there are too few to vary."""
    found: dict[int, Length] = {}
    for group in explained.groups:
        if group.ran == "cudnn" and group.cases:
            call = group.cases[0].call
            sizes = call.q.shape[-2], call.k.shape[-2]
            found |= {one.row: Length(sizes, one.cpu_us) for one in group.calls}
    return found if len({length.sizes for length in found.values()}) >= _FEWEST else {}


def varying_lengths(facts: Facts, length: dict[int, Length], where: Placement) -> Iterator[Varying]:
    """Find scopes whose calls do not all meet the same lengths under cuDNN.

    None where plans were built in the trace: `cpu-plan-cost` tells of those, with their time.
    """
    if not length or _plans_were_built(facts):
        return
    for scope, mine in where.by_scope(np.array(list(length), dtype=np.int64)):
        met = _by_call(facts, scope, mine, length)
        different = tuple(sorted(set().union(*met)))
        if len(different) >= _FEWEST and any(one != met[0] for one in met):
            host_us = float(np.median([length[row].host_us for row in mine.tolist()]))
            yield Varying(scope, mine, different, host_us)


def _by_call(
    facts: Facts, scope: ScopeFacts, rows: Int64, length: dict[int, Length]
) -> list[set[tuple[int, int]]]:
    """Lengths that each call of a scope meets; of those that meet any."""
    starts = np.sort([call.start_ns for call in scope.scope.calls])
    at = np.searchsorted(starts, facts.tree.trace.start_ns[rows], side="right")
    met: dict[int, set[tuple[int, int]]] = {}
    for row, call in zip(rows.tolist(), at.tolist(), strict=True):
        met.setdefault(call, set()).add(length[row].sizes)
    return list(met.values())


def _plans_were_built(facts: Facts) -> bool:
    return any("attention" in finding.subject for finding in cpu_plan_cost.check(facts))
