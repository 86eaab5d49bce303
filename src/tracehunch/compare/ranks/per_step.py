"""What the ops of a rank take in a step: in all of them, or in those in which somebody was late."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.model import OpSteps, RankSummary

    Times = Callable[[RankSummary], Mapping[str, float]]
    Tables = Callable[[RankSummary], OpSteps]


@dataclass(frozen=True, slots=True)
class Late:
    """Steps, as (recording, number), and by how much each rank's own numbers are ahead of these."""

    units: frozenset[tuple[int, int]]
    ahead: Mapping[int, int]

    def mean(self, times: Times, tables: Tables, member: Member) -> Mapping[str, float] | None:
        """Return the mean of what ops take in these steps; None where the rank recorded none of them.

        Of the ops that the table by step leaves out, which take little, it is the mean of all steps.
        """
        total: dict[str, float] = defaultdict(float)
        number = 0
        for file, recording in zip(member.files, member.recordings, strict=True):
            chosen = [
                at
                for at, step in enumerate(file.steps)
                if (recording, step.number - self.ahead.get(member.rank, 0)) in self.units
            ]
            number += len(chosen)
            by_step = _sums(tables(file), chosen) if chosen else {}
            for what, us in times(file).items():
                total[what] += by_step.get(what, us * len(chosen) / max(len(file.steps), 1))
        return {what: us / number for what, us in total.items()} if number else None


def _sums(table: OpSteps, steps: list[int]) -> Mapping[str, float]:
    if table.us is None:
        return {}
    return dict(zip(table.ops, table.us[:, steps].sum(axis=1, dtype=float).tolist(), strict=True))


def per_step(times: Times, member: Member) -> Mapping[str, float]:
    """Return times of all files of a rank, divided by its steps (1 where it has none)."""
    total: dict[str, float] = defaultdict(float)
    steps = steps_of(member)
    for file in member.files:
        for what, us in times(file).items():
            total[what] += us / steps
    return total


def steps_of(member: Member) -> int:
    """Return how many steps a rank recorded; 1 where it has none."""
    return sum(len(file.steps) for file in member.files) or 1
