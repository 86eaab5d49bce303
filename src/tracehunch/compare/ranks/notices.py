"""What a reader of a job must know: about its files, its clocks, and what could not be compared."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.damage import is_blind, is_cut
from tracehunch.compare.ranks.jobs import named
from tracehunch.trace.model import Notice
from tracehunch.units import count, plural, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.matching import Matches
    from tracehunch.compare.ranks.model import Clock
    from tracehunch.compare.ranks.peers import Peers
    from tracehunch.compare.ranks.table import Table
    from tracehunch.trace.model import Int64

_APART_NS: Final = 1_000_000
"""Clocks that are further apart are worth a word: those of hosts kept by PTP are not."""

_NO_GROUPS: Final = (
    ": the files do not tell which process group each belongs to (recent versions of PyTorch write it beside "
    "each collective)"
)


def notices(
    members: Sequence[Member],
    table: Table,
    matches: Matches,
    clocks: Sequence[Clock],
    peers: Peers,
) -> tuple[Notice, ...]:
    """Return the notices about the files, then those about the job."""
    return (
        *_of_files(members),
        *_of_matching(members, table, matches),
        *_of_clocks(clocks),
        *_of_stages(members, peers),
    )


def _of_files(members: Sequence[Member]) -> Iterator[Notice]:
    """Carry damage to the files with the rank; of the rest what is the same on all ranks says nothing new."""
    damaged: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    for member in members:
        for file in member.files:
            for one in file.notices:
                if one.lossy and one.code != "rank-unknown":  # which the job as a whole tells, or not
                    damaged[one.code].append((member.rank, file.label, one.message))
    for code, mine in sorted(damaged.items()):
        ranks, (first, label, message) = sorted({rank for rank, _, _ in mine}), mine[0]
        where = (
            f"rank {first} ({label})"
            if len(mine) == 1
            else f"in {plural(len(mine), 'file')} of {named(ranks)}"
        )
        example = "" if len(mine) == 1 else f"in {label} "
        yield Notice(code, f"{where}: {example}{message}", lossy=True)
    cut = [member.rank for member in members if is_blind(member) and is_cut(member)]
    if cut:
        text = "the file is cut before its GPU events" if len(cut) == 1 else "files are cut before GPU events"
        yield Notice("cut-before-gpu", f"{named(cut)}: {text}: where the time went cannot be told")
    idle = [member.rank for member in members if is_blind(member) and member.rank not in cut]
    if idle:
        backends = {file.backend for member in members for file in member.files}
        on_cpus = len(idle) == len(members) and all(one is not None and "ccl" not in one for one in backends)
        why = "collectives are read off GPUs" if on_cpus else "record with ProfilerActivity.CUDA"
        of = f" (backend {printable(', '.join(sorted(filter(None, backends))))})" if on_cpus else ""
        yield Notice("no-gpu-activity", f"{named(idle)}: no GPU activity was recorded{of}; {why}")


def _of_matching(members: Sequence[Member], table: Table, matches: Matches) -> Iterator[Notice]:
    if len(members) < 2:  # ranks
        return
    apart = [members[at].rank for at in matches.apart] or _never_together(members)
    if apart:
        text = (
            "was recorded at another time than the others"
            if len(apart) == 1
            else "were recorded at other times"
        )
        yield Notice(
            "recorded-apart", f"{named(apart)} {text}: their collectives cannot be matched with the others'"
        )
    if not len(table):
        yield Notice(
            "no-collectives", "no collectives with GPU kernels were recorded: nobody can say who waits"
        )
    elif (matches.call < 0).all() and not apart:
        text = "no collective could be matched across ranks, so nobody can say who waits"
        why = "" if (table.group >= 0).any() else _NO_GROUPS
        yield Notice("nothing-matched", f"{text}{why}")
    elif matches.unmatched:
        text = f"{count(matches.unmatched)} of {plural(len(table), 'collective')} could not be matched with"
        yield Notice("unmatched-collectives", f"{text} another rank's: they are left out of the waiting")


def _never_together(members: Sequence[Member]) -> list[int]:
    """Return the ranks whose recordings never overlap with that of any other, where no collective tells."""
    if any(len(file.collectives) for member in members for file in member.files):
        return []
    start = np.array([member.files[0].start_ns for member in members])
    end = np.array([member.files[-1].end_ns for member in members])
    order = np.argsort(start, kind="stable")
    before = np.r_[np.iinfo(np.int64).min, np.maximum.accumulate(end[order])[:-1]]
    after = np.r_[start[order][1:], np.iinfo(np.int64).max]
    alone = order[(start[order] >= before) & (end[order] <= after)]
    return sorted(members[at].rank for at in alone.tolist())


def _of_clocks(clocks: Sequence[Clock]) -> Iterator[Notice]:
    far = [one for one in clocks if abs(one.offset_ns) >= _APART_NS]
    if far:
        one = max(far, key=lambda one: (abs(one.offset_ns), -one.rank))
        way = "ahead of" if one.offset_ns > 0 else "behind"
        far_us = abs(one.offset_ns) / 1e3
        text = f"clocks are apart: rank {one.rank}'s is {time_us(far_us)} {way} the first rank's"
        more = f", and so are those of {plural(len(far) - 1, 'more rank')}" if len(far) > 1 else ""
        yield Notice("clocks-apart", f"{text} (+- {time_us(one.error_ns / 1e3)}){more}; it is taken off")
    drifting = [one for one in clocks if one.drift_ppm]
    if drifting:
        one = max(drifting, key=lambda one: (abs(one.drift_ppm), -one.rank))
        text = (
            f"the clock of rank {one.rank} drifts by {one.drift_ppm:.1f} us a second against the first rank's"
        )
        yield Notice("clock-drift", f"{text}; it is taken off")
    if len(clocks) > 1:
        unknown = [one.rank for one in clocks if not one.collectives]
        if unknown and len(unknown) < len(clocks):
            text = f"{named(unknown)}: no collective tells how far the clock is off, which is taken as it is"
            yield Notice("clock-unknown", text)


def _of_stages(members: Sequence[Member], peers: Peers) -> Iterator[Notice]:
    if peers.has_stages and len(members) > 1:
        text = "ranks that send to each other are taken for stages of a pipeline, which wait by design: they"
        yield Notice("pipeline-stages", f"{text} are only compared with the same stage of other replicas")


def of_numbering(members: Sequence[Member], ahead: Int64) -> Iterator[Notice]:
    """Say which ranks number their steps otherwise; ``ahead``: as ``numbering`` has it."""
    other = np.flatnonzero(ahead)
    if other.size:
        first = int(ahead[other[0]])
        way = f"{count(abs(first))} {'higher' if first > 0 else 'lower'}"
        ranks = named([members[at].rank for at in other.tolist()])
        text = f"{ranks}: steps are numbered otherwise ({way}); collectives tell which are the same"
        yield Notice("steps-renumbered", f"{text}, and the numbers of the other ranks are used")
