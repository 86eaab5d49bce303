"""What files say of their rank and job, where it cannot be: doubted, and what else tells is taken."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tracehunch.trace.header import rank_of_name
from tracehunch.trace.model import Notice
from tracehunch.units import count, join, plural, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import RankSummary

_MOST_RANKS: Final = 1_000_000
"""No job is larger: such a number is damage, and a list of all who are missing would not fit in memory."""
_NUMBER: Final = re.compile(r"(\d+)")


def believed(files: Sequence[RankSummary], notices: list[Notice]) -> list[RankSummary]:
    """Take away world sizes and ranks that cannot be."""
    found, doubted = [], []
    for file in files:
        world, rank = file.world_size, file.rank
        bad_world = world is not None and not 0 < world <= _MOST_RANKS
        bad_rank = rank is not None and not 0 <= rank < _MOST_RANKS
        if bad_world or bad_rank:
            doubted.append(file)
        kept = replace(file, world_size=None) if bad_world else file
        found.append(_as(kept, rank_of_name(file.label)) if bad_rank else kept)
    if doubted:
        first = doubted[0]
        said = f"{first.label} says rank {_said(first.rank)} of {_said(first.world_size)}"
        more = f", and so do {plural(len(doubted) - 1, 'more file')} or the like" if len(doubted) > 1 else ""
        notices.append(Notice("rank-doubted", f"{said}{more}, which cannot be and is not believed"))
    return found


def _said(number: int | None) -> str:
    return "?" if number is None else count(number)


def renamed(files: Sequence[RankSummary], notices: list[Notice]) -> list[RankSummary]:
    """Believe the names where all files, of one time, say that they are the same rank, unlike the names."""
    said = {file.rank for file in files}
    if len(files) < 2 or len(said) > 1 or said == {None} or not _at_one_time(files):
        return list(files)
    told = [rank_of_name(file.label) for file in files]
    text = f"all {count(len(files))} files say that they are rank {files[0].rank}"
    if None not in told and len(set(told)) == len(told):
        notices.append(Notice("rank-conflict", f"{text}: the ranks in their names are taken"))
        return [_as(file, rank) for file, rank in zip(files, told, strict=True)]
    devices = [{part.device for part in file.breakdown} for file in files]
    if all(devices) and sum(map(len, devices)) == len(set().union(*devices)):
        notices.append(Notice("rank-conflict", f"{text}, each of another GPU: that is not believed"))
        return [_as(file, None) for file in files]
    return list(files)


def _as(file: RankSummary, rank: int | None) -> RankSummary:
    """Take a file for a rank; it no longer matters what it says."""
    kept = tuple(one for one in file.notices if one.code != "rank-conflict")
    return replace(file, rank=rank, rank_from="order" if rank is None else "file name", notices=kept)


def _at_one_time(files: Sequence[RankSummary]) -> bool:
    return max(file.start_ns for file in files) < min(file.end_ns for file in files)


def numbered(files: Sequence[RankSummary]) -> dict[str, int]:
    """Return by source the rank of files that have none, where one number is all that tells names apart.

    Process ids do that, too: it has to be one that a rank can be.
    """
    parts = [_NUMBER.split(file.label) for file in files]
    if len(files) < 2 or len({tuple(one[::2]) for one in parts}) != 1:
        return {}
    differs = [at for at in range(1, len(parts[0]), 2) if len({one[at] for one in parts}) > 1]
    if len(differs) != 1:
        return {}
    ranks = [int(one[differs[0]][:9]) for one in parts]
    most = max(file.world_size or 0 for file in files) or 2 * len(files)
    is_told = len(set(ranks)) == len(ranks) and max(ranks) < most
    return {file.source: rank for file, rank in zip(files, ranks, strict=True)} if is_told else {}


def natural(file: RankSummary) -> tuple[list[tuple[int, int, str]], str]:
    """Sort ``job_2`` before ``job_10``."""
    key = [
        (1, int(part[:18]), "") if part.isdecimal() else (0, 0, part) for part in _NUMBER.split(file.label)
    ]
    return key, file.source


def at_once(files: Sequence[RankSummary]) -> list[list[RankSummary]]:
    """Split what two jobs recorded at one time, by folder or by how names look without their numbers.

    Only where that leaves each rank once, and each job several ranks.
    """
    if not _is_twice(files):
        return [list(files)]
    for keys in ([folder_of(file.source) for file in files], [look_of(file.label) for file in files]):
        parts: dict[str, list[RankSummary]] = defaultdict(list)
        for key, file in zip(keys, files, strict=True):
            parts[key].append(file)
        if len(parts) > 1 and all(
            not _is_twice(part) and len({one.rank for one in part}) > 1 for part in parts.values()
        ):
            return list(parts.values())
    return [list(files)]


def _is_twice(files: Sequence[RankSummary]) -> bool:
    """Whether files of one rank overlap in time."""
    by_rank: dict[int | None, list[RankSummary]] = defaultdict(list)
    for file in sorted(files, key=lambda file: file.start_ns):
        by_rank[file.rank].append(file)
    return any(
        later.start_ns < earlier.end_ns - (earlier.end_ns - earlier.start_ns) // 2
        for rank, mine in by_rank.items()
        if rank is not None
        for earlier, later in pairwise(mine)
    )


def folder_of(source: str) -> str:
    """Return the folder of a path or URL; "" where it names none."""
    parts = re.split(r"[/\\](?=[^/\\]*$)", source)
    return parts[0] if len(parts) > 1 else ""


def look_of(label: str) -> str:
    """Return how a name looks without its numbers, which ranks, cycles and processes differ in."""
    return _NUMBER.sub("#", label)


def of_several_versions(parts: Sequence[Sequence[RankSummary]], notices: list[Notice]) -> bool:
    """Whether files of different versions of PyTorch are one job: other ranks, at one time."""
    ranks = [{file.rank for file in part} for part in parts]
    spans = [(min(one.start_ns for one in part), max(one.end_ns for one in part)) for part in parts]
    apart = any(None in mine for mine in ranks) or sum(map(len, ranks)) > len(set().union(*ranks))
    if apart or max(start for start, _ in spans) >= min(end for _, end in spans):
        return False
    versions = Counter(file.torch for part in parts for file in part)
    said = join(
        [f"{printable(str(one))} on {plural(number, 'rank')}" for one, number in sorted(versions.items())]
    )
    notices.append(Notice("mixed-versions", f"the ranks ran different versions of PyTorch: {said}"))
    return True
