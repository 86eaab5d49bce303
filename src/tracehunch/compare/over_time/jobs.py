"""Which cycles are of one job: as ``tracehunch ranks`` tells jobs apart, and by what a rank's cycles share.

A *strand* is what one rank recorded, cycle after cycle: under the same annotations or in the same process, on
the same GPU, with steps that go on. Strands of several ranks are a job if nothing that all ranks share speaks
against it. Ranks may differ in their annotations, as one that logs does; then they were recorded at one time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.claims import folder_of, look_of
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.over_time.model import Cycle

_ALIKE: Final = 0.5
"""Share of the fewer scopes that cycles of one rank have in common."""


@dataclass(slots=True)
class _Strand:
    """Cycles of a rank in order of time, and what is known of all of them."""

    rank: int | None
    cycles: list[Cycle] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # of scopes, as the user wrote them
    shared: tuple[set[object], ...] = ()  # what all ranks of a job share, each that is known
    steps: list[tuple[int, int]] = field(default_factory=list)  # first and last of each cycle that has some

    def add(self, cycle: Cycle) -> None:
        """Add the next cycle."""
        self.cycles.append(cycle)
        self.names |= _named_by_user(cycle)
        said = _shared(cycle)
        self.shared = tuple(a | b for a, b in zip(self.shared or said, said, strict=True))
        if (steps := step_range(cycle)) is not None:
            self.steps.append(steps)


_Fit = tuple[bool, bool, bool]
"""How well a strand fits a job: at one time, in the same place, under the same annotations."""


def jobs_of(cycles: Sequence[Cycle]) -> list[list[Cycle]]:
    """Return the cycles of each job, in the order given; the job with the most cycles, then ranks, first."""
    by_rank: dict[int | None, list[Cycle]] = {}
    for cycle in cycles:
        by_rank.setdefault(cycle.rank, []).append(cycle)
    jobs: list[list[_Strand]] = []
    for rank in sorted(by_rank, key=lambda one: (one is None, one or 0)):
        _join(_strands(rank, by_rank[rank]), jobs)
    place = {id(cycle): at for at, cycle in enumerate(cycles)}
    ordered = sorted(jobs, key=_largest_first)
    return [sorted(_cycles(job), key=lambda cycle: place[id(cycle)]) for job in ordered]


def _largest_first(job: Sequence[_Strand]) -> tuple[int, int, int]:
    cycles = _cycles(job)
    return -len(cycles), -len(job), -max(cycle.end_ns for cycle in cycles)


def _cycles(job: Sequence[_Strand]) -> list[Cycle]:
    return [cycle for strand in job for cycle in strand.cycles]


def _strands(rank: int | None, cycles: Sequence[Cycle]) -> list[_Strand]:
    """Split what claims to be one rank: other programs, and those that began again elsewhere."""
    strands: list[_Strand] = []
    for cycle in sorted(cycles, key=lambda one: one.start_ns if one.is_absolute else 0):
        may = [strand for strand in strands if _continues(strand, cycle)]
        if may:
            mine = max(may, key=lambda strand: _near(strand.cycles[-1], cycle))
        else:
            mine = _Strand(rank)
            strands.append(mine)
        mine.add(cycle)
    return strands


def _continues(strand: _Strand, cycle: Cycle) -> bool:
    """Tell whether a cycle is of a strand; steps may begin again if the names of the files go on."""
    if _hardware(strand.cycles[0]) != _hardware(cycle):
        return False
    if not _may_be_one_job(strand.shared, _shared(cycle)):
        return False
    if not (_alike(strand.names, _named_by_user(cycle)) or _is_same_program(strand, cycle)):
        return False
    if _in_place(strand.cycles[-1], cycle) or _steps_go_on(strand, cycle):
        return True
    beside = [one for one in strand.cycles if _at_once([[one], [cycle]])]
    return any(cycle.rank is None or _share_calls(one, cycle) for one in beside)


def _is_same_program(strand: _Strand, cycle: Cycle) -> bool:
    """Tell whether process, names of files and steps go on: then new annotations are a change in a run."""
    before = strand.cycles[-1]
    known = bool(before.process) and before.process == cycle.process and bool(strand.steps)
    numbered = step_range(cycle) is not None
    return known and numbered and _in_place(before, cycle) and _steps_go_on(strand, cycle)


def _hardware(cycle: Cycle) -> tuple[bool, tuple[str, ...]]:
    return cycle.on_gpu, cycle.devices


def _near(before: Cycle, cycle: Cycle) -> tuple[bool, bool]:
    return _in_place(before, cycle), before.process == cycle.process


def _may_be_one_job(some: Sequence[set[object]], others: Sequence[set[object]]) -> bool:
    """Tell whether nothing that is the same on all ranks differs; what a file does not say does not."""
    return all(not a or not b or a & b for a, b in zip(some, others, strict=True))


def _shared(cycle: Cycle) -> tuple[set[object], ...]:
    said = cycle.world_size, cycle.backend, cycle.group
    return tuple(set() if one is None else {one} for one in said)


def _alike(some: set[str], others: set[str]) -> bool:
    if not some or not others:
        return some == others
    return len(some & others) >= _ALIKE * min(len(some), len(others))


def _named_by_user(cycle: Cycle) -> set[str]:
    """Return the names of scopes without those that every job has."""
    return {name for name, one in cycle.scopes.items() if one.kind not in ("step", "whole")}


def _in_place(one: Cycle, other: Cycle) -> bool:
    """Tell whether two files are in one folder, under names that differ in numbers only."""
    places = [(folder_of(cycle.source), look_of(cycle.label)) for cycle in (one, other)]
    return places[0] == places[1]


def _steps_go_on(strand: _Strand, cycle: Cycle) -> bool:
    """Tell whether a cycle's steps come after those before it; so they do where it or these have none."""
    mine = step_range(cycle)
    if mine is None or not strand.steps:
        return True
    if cycle.is_absolute:
        return mine[0] > max(last for _, last in strand.steps)
    return all(mine[0] > last or mine[1] < first for first, last in strand.steps)


def step_range(cycle: Cycle) -> tuple[int, int] | None:
    """Return the first and the last step of a cycle; None where it has none."""
    steps = [one for one in cycle.scopes.values() if one.kind == "step"]
    known = steps[0].step[steps[0].step != ABSENT] if steps else np.zeros(0, dtype=np.int64)
    return (int(known.min()), int(known.max())) if known.size else None


def _at_once(groups: Sequence[Sequence[Cycle]]) -> bool:
    """Tell whether groups overlap; that is not known of files without a date."""
    return overlap([[cycle for cycle in group if cycle.is_absolute] for group in groups])


def overlap(groups: Sequence[Sequence[Cycle]]) -> bool:
    """Tell whether a cycle of one group was recorded during one of another."""
    spans = sorted(
        (cycle.start_ns, cycle.end_ns, number) for number, group in enumerate(groups) for cycle in group
    )
    return any(later[0] < earlier[1] and later[2] != earlier[2] for earlier, later in pairwise(spans))


def _share_calls(one: Cycle, other: Cycle) -> bool:
    """Tell whether two files hold a call of the same scope at the same nanosecond."""
    return any(
        np.isin(mine.start_ns, other.scopes[name].start_ns).any()
        for name, mine in one.scopes.items()
        if name in other.scopes
    )


def _join(strands: Sequence[_Strand], jobs: list[list[_Strand]]) -> None:
    """Add the strands of one rank to the jobs that they fit best, one each; the others are jobs anew."""
    pairs = [
        (fit, number, at)
        for number, strand in enumerate(strands)
        for at, job in enumerate(jobs)
        if (fit := _fit(strand, job)) is not None
    ]
    placed: dict[int, int] = {}
    for _, number, at in sorted(pairs, key=lambda pair: pair[0], reverse=True):
        if number not in placed and at not in placed.values():
            placed[number] = at
    for number, strand in enumerate(strands):
        if number in placed:
            jobs[placed[number]].append(strand)
        else:
            jobs.append([strand])


def _fit(strand: _Strand, job: Sequence[_Strand]) -> _Fit | None:
    """Return how well a strand fits a job of other ranks; None where it cannot be one of these."""
    if not all(_may_be_one_job(other.shared, strand.shared) for other in job):
        return None
    first = strand.cycles[0]
    alike = any(_alike(other.names, strand.names) for other in job)
    if strand.rank is None and not (alike and _hardware(first) == _hardware(job[0].cycles[0])):
        return None  # neither says that it is a rank of the same job
    beside = any(_at_once([other.cycles, strand.cycles]) for other in job)
    if not (alike or beside):
        return None
    return beside, any(_in_place(one, first) for other in job for one in other.cycles[:1]), alike
