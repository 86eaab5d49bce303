"""Which files are ranks of one job: mixed jobs, the same rank twice, cycles of the profiler's schedule.

A *recording* is what the ranks recorded at one time. A rank that has several, one after the other, with steps
that go on, recorded cycles of one run; where the steps begin again it is another run, which is another job.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tracehunch.compare.ranks.claims import at_once, believed, natural, numbered, of_several_versions, renamed
from tracehunch.trace.model import Notice
from tracehunch.units import count, join, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tracehunch.compare.ranks.model import Group, RankFrom, RankSummary

_NAMED: Final = 8
_APART_NS: Final = 10_000_000
"""What the windows of two cycles of one process may seem to overlap by: its edges are not sharp."""


@dataclass(frozen=True, slots=True)
class Member:
    """One rank of the job: its files in order of time, and of which recording each is."""

    rank: int
    rank_from: RankFrom
    files: tuple[RankSummary, ...]
    recordings: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """The job that is reported, and what was left out."""

    members: tuple[Member, ...]
    world_size: int | None
    missing: tuple[int, ...]
    notices: tuple[Notice, ...]
    other_jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A file with the rank that it is taken for."""

    rank: int
    rank_from: RankFrom
    file: RankSummary


@dataclass(slots=True)
class _Run:
    """One run of a job while its recordings are put together."""

    recordings: list[list[_Ranked]] = field(default_factory=list)

    @property
    def ranks(self) -> set[int]:
        return {one.rank for recording in self.recordings for one in recording}

    @property
    def end_ns(self) -> int:
        return max(one.file.end_ns for recording in self.recordings for one in recording)

    def files_of(self, rank: int) -> list[RankSummary]:
        return [one.file for recording in self.recordings for one in recording if one.rank == rank]


def choose(summaries: Sequence[RankSummary]) -> Job:
    """Return the job with the most ranks, of those the newest; the others are named."""
    notices: list[Notice] = []
    files = _distinct(sorted(summaries, key=lambda one: (one.source, one.fingerprint)), notices)
    files = believed(files, notices)
    buckets = [part for bucket in _buckets(files, notices) for part in at_once(renamed(bucket, notices))]
    runs = [run for bucket in buckets for run in _runs(_ranked(bucket), notices)]
    if not runs:
        return Job((), None, (), tuple(notices), ())
    runs.sort(key=lambda run: (-len(run.ranks), -run.end_ns, _first_source(run)))
    chosen, others = runs[0], runs[1:]
    members = _members(chosen)
    world = next((f.world_size for m in members for f in m.files if f.world_size is not None), None)
    missing = tuple(sorted(set(range(world)) - {one.rank for one in members})) if world else ()
    root = common_folder([one.source for one in files])
    told = tuple(_phrase(run, root) for run in others)
    if told:
        notices.append(_mixed(told))
    notices += _about(members, world, missing)
    return Job(members, world, missing, tuple(notices), told)


def _distinct(files: Sequence[RankSummary], notices: list[Notice]) -> list[RankSummary]:
    """Leave out files that hold the same recording as another one."""
    first: dict[tuple[str, int | None], RankSummary] = {}
    for file in files:
        kept = first.setdefault((file.fingerprint, file.rank), file)
        if kept is not file:
            text = f"{file.label} is left out: it holds the same recording as {kept.label}"
            notices.append(Notice("duplicate-file", text))
    return list(first.values())


def _buckets(files: Sequence[RankSummary], notices: list[Notice]) -> list[list[RankSummary]]:
    """Keep apart what cannot be one job; a file that does not say goes with the only one there is."""
    said = [_identity(file) for file in files]
    known = [{value for value in column if value is not None} for column in zip(*said, strict=True)]
    only = [next(iter(values)) if len(values) == 1 else None for values in known]
    found: dict[tuple[object, ...], list[RankSummary]] = defaultdict(list)
    for file, mine in zip(files, said, strict=True):
        key = tuple(other if value is None else value for value, other in zip(mine, only, strict=True))
        found[key].append(file)
    return _joined(found, notices)


def _joined(
    found: Mapping[tuple[object, ...], list[RankSummary]], notices: list[Notice]
) -> list[list[RankSummary]]:
    """Put together what only the version of PyTorch keeps apart, where it can be one job."""
    alike: dict[tuple[object, ...], list[list[RankSummary]]] = defaultdict(list)
    for (_, *key), files in found.items():
        alike[tuple(key)].append(files)
    buckets = []
    for parts in alike.values():
        one_job = len(parts) > 1 and of_several_versions(parts, notices)
        buckets += [[file for part in parts for file in part]] if one_job else parts
    return buckets


def _identity(file: RankSummary) -> tuple[object, ...]:
    """Return what is the same on all ranks of a job, the version first; None where a file does not say."""
    return file.torch, file.world_size, file.backend, largest_group(file.groups)


def largest_group(groups: Sequence[Group]) -> tuple[str, str, int | None] | None:
    """Return what a header calls the largest process group, which is that of all ranks; None without one."""
    sized = [group for group in groups if group.size is not None]
    if not sized:
        return None
    largest = max(sized, key=lambda group: group.size or 0)
    return (largest.name, largest.description, largest.size)


def _ranked(files: Sequence[RankSummary]) -> list[_Ranked]:
    """Give each file a rank: its own, else the number in its name, else the next free one by names."""
    unnamed = sorted((file for file in files if file.rank is None), key=natural)
    taken = {file.rank for file in files if file.rank is not None}
    by_name = numbered(unnamed)
    free = (number for number in range(len(files) + len(taken)) if number not in taken)
    if by_name and not taken & set(by_name.values()):
        given = {file.source: _Ranked(by_name[file.source], "file name", file) for file in unnamed}
    else:
        given = {file.source: _Ranked(next(free), "order", file) for file in unnamed}
    return [
        given[file.source] if file.rank is None else _Ranked(file.rank, file.rank_from, file)
        for file in files
    ]


def _runs(files: Sequence[_Ranked], notices: list[Notice]) -> list[_Run]:
    runs: list[_Run] = []
    for recording in _recordings(files):
        once = _once_each(recording, notices)
        run = next((run for run in reversed(runs) if _goes_on(run, once)), None)
        if run is None:
            runs.append(_Run([once]))
        else:
            _add(run, once)
    return runs


def _recordings(files: Sequence[_Ranked]) -> list[list[_Ranked]]:
    """Split files into what was recorded at one time: by steps where those go on, else by windows."""
    return _by_steps(files) or _by_windows(files)


def _by_steps(files: Sequence[_Ranked]) -> list[list[_Ranked]]:
    """Put files of the same steps together: the clocks of hosts may be apart by more than a cycle.

    Nothing is returned where a rank has no steps, or the same ones twice.
    """
    by_rank: dict[int, list[RankSummary]] = defaultdict(list)
    for one in files:
        by_rank[one.rank].append(one.file)
    if all(len(mine) == 1 for mine in by_rank.values()):
        return []
    for mine in by_rank.values():
        mine.sort(key=lambda file: (file.start_ns, file.source))
        ranges = [_steps_of(file) for file in mine]
        if not all(ranges) or any(
            before[1] >= after[0] for before, after in pairwise(ranges) if before and after
        ):
            return []
    found: list[list[_Ranked]] = []
    last = -1
    for one in sorted(files, key=lambda one: (_steps_of(one.file) or (0, 0), one.rank)):
        first, final = _steps_of(one.file) or (0, 0)
        if not found or first > last:
            found.append([])
        found[-1].append(one)
        last = max(last, final)
    return found


def _steps_of(file: RankSummary) -> tuple[int, int] | None:
    """Return the first and the last step of a file."""
    known = [step.number for step in file.steps]
    return (min(known), max(known)) if known else None


def _by_windows(files: Iterable[_Ranked]) -> list[list[_Ranked]]:
    """Put files together whose windows overlap, directly or through others."""
    found: list[list[_Ranked]] = []
    end_ns = 0
    for one in sorted(files, key=lambda one: (one.file.start_ns, one.file.end_ns, one.file.source)):
        if not found or one.file.start_ns >= end_ns or _is_next(one, found[-1]):
            found.append([])
            end_ns = one.file.end_ns
        found[-1].append(one)
        end_ns = max(end_ns, one.file.end_ns)
    return found


def _is_next(one: _Ranked, recording: Sequence[_Ranked]) -> bool:
    """Whether the rank's own recording was over: another rank's window reaches into its next cycle."""
    own = [other.file.end_ns for other in recording if other.rank == one.rank]
    return (
        bool(own)
        and one.file.start_ns >= max(own) - _APART_NS
        and _steps_go_on([other.file for other in recording if other.rank == one.rank], one.file)
    )


def _once_each(recording: Sequence[_Ranked], notices: list[Notice]) -> list[_Ranked]:
    """Of a rank's files of one time take the newest."""
    newest: dict[int, _Ranked] = {}
    for one in recording:
        kept = newest.get(one.rank)
        if kept is not None:
            text = f"rank {one.rank} was recorded twice at one time: {one.file.label} is taken, the newer "
            notices.append(Notice("duplicate-rank", f"{text}one, and {kept.file.label} is left out"))
        newest[one.rank] = one
    return list(newest.values())


def _goes_on(run: _Run, recording: Sequence[_Ranked]) -> bool:
    """Whether a recording is the next cycle of a run, or its ranks that were recorded at another time."""
    both = [one for one in recording if one.rank in run.ranks]
    return all(_steps_go_on(run.files_of(one.rank), one.file) for one in both)


def _steps_go_on(before: Sequence[RankSummary], after: RankSummary) -> bool:
    """Whether a file's steps come after those of others; so they do where one has none."""
    known = [steps[1] for file in before if (steps := _steps_of(file))]
    first = _steps_of(after)
    return not known or first is None or first[0] > max(known)


def _add(run: _Run, recording: list[_Ranked]) -> None:
    """Add a recording: to the last one where it has none of its ranks, else as the next."""
    last = run.recordings[-1]
    if {one.rank for one in last} & {one.rank for one in recording}:
        run.recordings.append(recording)
    else:
        last += recording


def _members(run: _Run) -> tuple[Member, ...]:
    found: dict[int, list[tuple[int, _Ranked]]] = defaultdict(list)
    for number, recording in enumerate(run.recordings):
        for one in recording:
            found[one.rank].append((number, one))
    return tuple(
        Member(rank, mine[0][1].rank_from, tuple(o.file for _, o in mine), tuple(n for n, _ in mine))
        for rank, mine in sorted(found.items())
    )


def _first_source(run: _Run) -> str:
    return min(one.file.source for recording in run.recordings for one in recording)


def common_folder(sources: Sequence[str]) -> str:
    """Return the folder that holds all files, which the one who asked knows; with a slash, or empty."""
    common = os.path.commonprefix([_folder(source) for source in sources])  # noqa: RUF071  # cut at a slash below
    return common[: common.rfind("/") + 1]


def _folder(source: str) -> str:
    return source[: source.rfind("/") + 1]


def _phrase(run: _Run, root: str) -> str:
    files = sorted((one.file for r in run.recordings for one in r), key=lambda file: file.source)
    world = next((file.world_size for file in files if file.world_size is not None), None)
    of = f" of {count(world)}" if world else ""
    names = f"{files[0].label} ... {files[-1].label}" if len(files) > 1 else files[0].label
    inside = common_folder([file.source for file in files]).removeprefix(root)
    if inside and not names.startswith(inside):
        names = f"{inside}{names}" if len(files) == 1 else f"{inside}: {names}"
    return f"{plural(len(run.ranks), 'rank')}{of} ({names})"


def _mixed(told: Sequence[str]) -> Notice:
    more = f" and {plural(len(told) - _NAMED, 'more job')}" if len(told) > _NAMED else ""
    text = "there is more than one job here; the one with the most ranks, of those the newest, is reported; "
    return Notice("mixed-jobs", f"{text}left out: {'; '.join(told[:_NAMED])}{more}")


def _about(members: Sequence[Member], world: int | None, missing: Sequence[int]) -> list[Notice]:
    found = []
    if missing:
        text = f"{plural(len(missing), 'rank')} of {world} {'is' if len(missing) == 1 else 'are'} missing"
        found.append(Notice("missing-ranks", f"{text}: {numbers(missing)}"))
    beyond = [one.rank for one in members if world is not None and one.rank >= world]
    if beyond:
        text = f"{named(beyond)}: not within the world size of {world}"
        found.append(Notice("rank-beyond-world-size", text))
    by_order = [one.rank for one in members if one.rank_from == "order"]
    if by_order:
        text = "neither the files nor their names say which rank they are: numbered in the order of names"
        found.append(Notice("rank-by-order", f"{text} ({plural(len(by_order), 'file')})"))
    most = max(len(one.files) for one in members)
    if most > 1:
        text = f"ranks have up to {most} files, cycles of one run, which are taken together"
        found.append(Notice("several-cycles", text))
    fewer = [one.rank for one in members if len(one.files) < most]
    if fewer:
        text = f"{named(fewer)}: fewer cycles than other ranks have"
        found.append(Notice("missing-cycles", text))
    return found


def named(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0-3 and 7``."""
    return f"rank{'' if len(ranks) == 1 else 's'} {numbers(ranks)}"


def numbers(ranks: Sequence[int]) -> str:
    """``0-3, 7 and 9``; of many the first few."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    if len(parts) > _NAMED:
        return f"{', '.join(parts[:_NAMED])} ... ({count(len(ranks))} in all)"
    return join(parts)
