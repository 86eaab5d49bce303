"""Cycles in any order -> runs: one a rank or process, in order of time, each recording once.

Never by the name or date of a file: by the stamps in it. What does not belong, or cannot be put in order, is
said in a sentence, and the rest goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.over_time.calls import uses_at
from tracehunch.compare.over_time.jobs import jobs_of, overlap, step_range
from tracehunch.compare.over_time.model import Cycle, ScopeCalls
from tracehunch.compare.ranks.jobs import common_folder
from tracehunch.trace.discover import natural
from tracehunch.trace.model import Notice
from tracehunch.units import join, plural, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracehunch.trace.model import Int64

_ORDINARY: Final = ("outside-window",)
"""What is true of every cycle whose GPU runs behind the host, and touches no call's facts."""
_NAMED: Final = 3  # files of another job, and cycles with damage, that are named


@dataclass(frozen=True, slots=True)
class Ordered:
    """The cycles of one rank or process in order of time, and what to know about them."""

    rank: int | None
    process: str
    cycles: tuple[Cycle, ...]
    notices: tuple[Notice, ...]


def order(cycles: Sequence[Cycle]) -> tuple[list[Ordered], list[str]]:
    """Return the runs, and a sentence for each recording that was left out."""
    ordered = sorted(cycles, key=lambda cycle: natural(cycle.source))
    kept, left_out = _without_duplicates(ordered)
    job, *others = jobs_of(kept) or [[]]
    root = common_folder([one.source for one in kept])
    left_out += [_other_job(one, root) for one in others]
    runs = [_run(rank, process, of_run) for (rank, process), of_run in _split(job).items()]
    return sorted(runs, key=lambda run: (run.rank is None, run.rank or 0, natural(run.process))), left_out


def _without_duplicates(cycles: Sequence[Cycle]) -> tuple[list[Cycle], list[str]]:
    seen: dict[str, Cycle] = {}
    said = []
    for cycle in cycles:
        first = seen.setdefault(cycle.fingerprint, cycle)
        if first is not cycle:
            said.append(f"{_short(cycle)} holds the same recording as {_short(first)}: it is counted once")
    return list(seen.values()), said


def _other_job(job: Sequence[Cycle], root: str) -> str:
    """Return what an other job is: where it ran, its scopes and steps, and files, from their folder on."""
    first = job[0]
    where = f" on {join(first.devices)}" if first.devices else "" if first.on_gpu else " without a GPU"
    world = f", {first.world_size} ranks" if first.world_size else ""
    names = list(dict.fromkeys(name for cycle in job for name in cycle.scopes))
    shown = [printable(name, 30) for name in names[:_NAMED]]
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    scopes = join([*shown, *more])
    known = [one for one in map(step_range, job) if one is not None]
    steps = f"; steps {min(one[0] for one in known)} to {max(one[1] for one in known)}" if known else ""
    files = [printable(one.source.removeprefix(root) or one.label, 70) for one in job]
    told = ", ".join(files[:_NAMED]) + (" ..." if len(files) > _NAMED else "")
    return f"another job{where}{world} (scopes: {scopes}{steps}) was left out: {told}"


def _split(cycles: Sequence[Cycle]) -> dict[tuple[int | None, str], list[Cycle]]:
    """Return the cycles by rank; by process, too, where processes of one rank ran at the same time."""
    by_rank: dict[int | None, list[Cycle]] = {}
    for cycle in cycles:
        by_rank.setdefault(cycle.rank, []).append(cycle)
    runs: dict[tuple[int | None, str], list[Cycle]] = {}
    for rank, mine in by_rank.items():
        by_process: dict[str, list[Cycle]] = {}
        by_host = len({cycle.host for cycle in mine if cycle.host}) > 1
        for cycle in mine:
            by_process.setdefault(_process(cycle, by_host=by_host), []).append(cycle)
        at_once = len(by_process) > 1 and overlap(list(by_process.values()))
        for process, some in by_process.items() if at_once else [("", mine)]:
            runs.setdefault((rank, process), []).extend(some)
    return runs


def _process(cycle: Cycle, *, by_host: bool) -> str:
    """Return what tells processes apart: the pid, with the host's name where there are several."""
    return f"{cycle.host}_{cycle.process}" if by_host and cycle.host else cycle.process


def _run(rank: int | None, process: str, cycles: Sequence[Cycle]) -> Ordered:
    ordered, how = _in_time(cycles)
    once, overlaps = _each_call_once(ordered)
    notices = [*how, *overlaps, *_steps_told(once), *_processes(once), *_recorded(once), *_damage(once)]
    return Ordered(rank, process, tuple(once), tuple(notices))


def _in_time(cycles: Sequence[Cycle]) -> tuple[list[Cycle], list[Notice]]:
    if len(cycles) < 2 or all(cycle.is_absolute for cycle in cycles):
        return sorted(cycles, key=lambda cycle: cycle.start_ns), []
    steps = [step_range(cycle) for cycle in cycles]
    if all(one is not None for one in steps) and len({one for one in steps if one}) == len(cycles):
        known = sorted(zip([one for one in steps if one], cycles, strict=True), key=lambda pair: pair[0])
        said = "some files have no absolute time: the cycles are in the order of their step numbers"
        return _one_after_another([cycle for _, cycle in known]), [Notice("no-absolute-time", said)]
    said = (
        "some files have no absolute time and no step numbers that tell: the cycles are in the order of "
        "their names, which may be wrong"
    )
    ordered = sorted(cycles, key=lambda cycle: natural(cycle.source))
    return _one_after_another(ordered), [Notice("order-unsure", said, lossy=True)]


def _one_after_another(cycles: Sequence[Cycle]) -> list[Cycle]:
    """Return the cycles with stamps that put each after the one before."""
    placed: list[Cycle] = []
    for cycle in cycles:
        later = placed[-1].end_ns - cycle.start_ns + 1 if placed else -cycle.start_ns
        scopes = {
            name: replace(one, start_ns=one.start_ns + later, end_ns=one.end_ns + later)
            for name, one in cycle.scopes.items()
        }
        placed.append(
            replace(
                cycle,
                start_ns=cycle.start_ns + later,
                end_ns=cycle.end_ns + later,
                is_absolute=False,
                scopes=scopes,
            )
        )
    return placed


def _each_call_once(cycles: Sequence[Cycle]) -> tuple[list[Cycle], list[Notice]]:
    """Drop from a cycle the calls that one before it holds, too; say where cycles overlap."""
    once: list[Cycle] = []
    said = []
    for cycle in cycles:
        before = next((one for one in once if one.end_ns > cycle.start_ns and cycle.is_absolute), None)
        if before is None:
            once.append(cycle)
            continue
        scopes, dropped = _without_calls(cycle.scopes, before.scopes)
        rest = (
            f"{plural(dropped, 'call')} in both {'counts' if dropped == 1 else 'count'} once"
            if dropped
            else "no call is in both; a clock may have been set"
        )
        lap = time_us((min(before.end_ns, cycle.end_ns) - cycle.start_ns) / 1e3)
        said.append(Notice("overlap", f"{_short(before)} and {_short(cycle)} overlap by {lap}: {rest}"))
        once.append(replace(cycle, scopes=scopes))
    return once, said


def _without_calls(
    mine: Mapping[str, ScopeCalls], earlier: Mapping[str, ScopeCalls]
) -> tuple[dict[str, ScopeCalls], int]:
    kept, dropped = {}, 0
    for name, scope in mine.items():
        other = earlier.get(name)
        twice = np.isin(scope.start_ns, other.start_ns) if other else np.zeros(len(scope), dtype=bool)
        dropped += int(twice.sum())
        kept[name] = part(scope, np.flatnonzero(~twice)) if twice.any() else scope
    return {name: scope for name, scope in kept.items() if len(scope)}, dropped


def part(scope: ScopeCalls, calls: Int64) -> ScopeCalls:
    """Return some calls of a scope."""
    place = np.full(len(scope), -1, dtype=np.int64)
    place[calls] = np.arange(calls.size)
    uses = scope.uses
    keep = place[uses.call] >= 0
    return ScopeCalls(
        scope.name,
        scope.kind,
        scope.start_ns[calls],
        scope.end_ns[calls],
        scope.step[calls],
        {key: values[calls] for key, values in scope.values.items()},
        {key: tuple(words[at] for at in calls.tolist()) for key, words in scope.words.items()},
        uses_at(uses, np.flatnonzero(keep), place[uses.call[keep]]),
    )


def _steps_told(cycles: Sequence[Cycle]) -> Iterator[Notice]:
    """Say where the numbers of steps start again, and where a cycle seems to be missing."""
    ranges = [step_range(cycle) for cycle in cycles]
    known = [(cycle, one) for cycle, one in zip(cycles, ranges, strict=True) if one is not None]
    restarts = [late for (_, early), (late, mine) in pairwise(known) if mine[0] <= early[1]]
    if restarts:
        where = f"in {_short(restarts[0])}" if len(restarts) == 1 else f"{len(restarts)} times"
        yield Notice(
            "steps-restart", f"the numbers of steps start again {where}: places are told by cycle and call"
        )
        return
    strides = [mine[0] - early[0] for (_, early), (_, mine) in pairwise(known)]
    usual = sorted(strides)[len(strides) // 2] if len(strides) > 2 else 0
    for ((early, first), (late, mine)), stride in zip(pairwise(known), strides, strict=True):
        missing = round(stride / usual) - 1 if usual else 0
        if missing > 0 and stride > 1.5 * usual:
            yield Notice(
                "missing-cycle",
                f"between {_short(early)} (to step {first[1]}) and {_short(late)} (from step {mine[0]}) "
                f"{plural(missing, 'cycle')} of the schedule {'is' if missing == 1 else 'are'} missing",
            )


def _processes(cycles: Sequence[Cycle]) -> Iterator[Notice]:
    changes = [late for early, late in pairwise(cycles) if early.process != late.process]
    if changes:
        where = ", ".join(_short(one) for one in changes[:_NAMED]) + (" ..." if len(changes) > _NAMED else "")
        yield Notice("restarted", f"another process from {where} on: the run was started again")


def _recorded(cycles: Sequence[Cycle]) -> Iterator[Notice]:
    for at, what in enumerate(("shapes", "stacks", "memory")):
        flags = [cycle.recorded[at] for cycle in cycles]
        if len(set(flags)) > 1:
            yield Notice(
                "recorded-otherwise",
                f"{what} were recorded in {sum(flags)} of {len(flags)} cycles: recording costs time on the "
                "host, so host times do not compare among them",
            )


def _damage(cycles: Sequence[Cycle]) -> Iterator[Notice]:
    by_code: dict[str, list[tuple[Cycle, Notice]]] = {}
    for cycle in cycles:
        for notice in cycle.notices:
            if notice.lossy and notice.code not in _ORDINARY:
                by_code.setdefault(notice.code, []).append((cycle, notice))
    for code, some in by_code.items():
        cycle, notice = some[0]
        more = f" (and in {plural(len(some) - 1, 'more cycle')})" if len(some) > 1 else ""
        yield Notice(code, f"{_short(cycle)}: {notice.message}{more}", lossy=True)


def _short(cycle: Cycle) -> str:
    return printable(cycle.label, 70)
