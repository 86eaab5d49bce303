"""Reads what kernels and calls of collectives say in their args, and puts sends and receives into groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from tracehunch.compare.ranks.comms import Comm, Job, comm_of
from tracehunch.trace.model import ABSENT
from tracehunch.tree import NONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Group
    from tracehunch.tree import Tree

T = TypeVar("T")

_NO_WORK: Final = ("wait", "init")
"""What ``record_param_comms`` also writes, and no kernel does."""
_POINT_TO_POINT: Final = ("send", "recv")


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads the args of kernels and calls of one file."""

    tree: Tree
    job: Job

    def comm(self, row: int, own: int) -> Comm | None:
        """Return what a kernel's args say, completed by those of its call; None where neither says it."""
        args = self.tree.trace.args_of(row)
        found = comm_of(args, self.job)
        if own != NONE and (found is None or _lacks(found)):
            found = comm_of({**self.tree.trace.args_of(own), **args}, self.job)
        return None if found is None else self._placed(found)

    def joined(self, calls: Sequence[int]) -> Comm | None:
        """Return several calls as one; None where there is none among them that moves something."""
        comms = _last_alike([comm_of(self.tree.trace.args_of(call), self.job) for call in calls])
        if not comms:
            return None
        one = replace(
            comms[0],
            kind="+".join(sorted({comm.kind for comm in comms})),
            dtype=_only({comm.dtype for comm in comms}) or "",
            in_bytes=_total([comm.in_bytes for comm in comms]),
            out_bytes=_total([comm.out_bytes for comm in comms]),
            peer=_only({comm.peer for comm in comms}),
        )
        if one.kind in _POINT_TO_POINT and (one.peer is not None or len(comms) == 1):
            return self._placed(one)
        if any(comm.kind in _POINT_TO_POINT for comm in comms):
            return replace(one, sequence=ABSENT, group=self._among(one.group, {c.peer for c in comms}))
        return one

    def _placed(self, comm: Comm) -> Comm:
        """Give a send or receive the two ranks as its group."""
        if comm.kind not in _POINT_TO_POINT:
            return comm
        me, peer = self._pair(comm)
        comm = replace(comm, sequence=ABSENT, peer=peer)
        if comm.group is None or me is None or peer is None:
            return replace(comm, group=None)
        pair = (me, peer) if comm.kind == "send" else (peer, me)
        return replace(comm, group=_named(comm.group, pair, "->"))

    def _pair(self, comm: Comm) -> tuple[int | None, int | None]:
        """Return this rank and its peer; in a group of two either follows from the other."""
        me, peer = self.job.rank, comm.peer
        if comm.group is not None and len(comm.group.ranks) == 2:  # a pair
            first, second = comm.group.ranks
            others: dict[int | None, int] = {first: second, second: first}
            me, peer = (others.get(peer) if me is None else me), (others.get(me) if peer is None else peer)
        return me, peer

    def _among(self, group: Group | None, peers: set[int | None]) -> Group | None:
        """Return the group of this rank and those it sends to or receives from in one batch."""
        known = {rank for rank in (*peers, self.job.rank) if rank is not None}
        if group is None or self.job.rank is None or None in peers:
            return None
        return _named(group, tuple(sorted(known)), "<->")


def _named(group: Group, ranks: tuple[int, ...], arrow: str) -> Group:
    """Name a group of a few ranks after the one in which they talk: it counts its calls for itself."""
    return replace(group, name=f"{group.name}:{arrow.join(map(str, ranks))}", ranks=ranks, size=len(ranks))


def _last_alike(comms: Sequence[Comm | None]) -> list[Comm]:
    """Return the last calls that can be one group's: in one process group, and all of one sort.

    Others before them had no kernel for another reason: a group of one rank, a backend on the CPU, a wait.
    """
    found: list[Comm] = []
    for comm in reversed(comms):
        if comm is None or comm.kind in _NO_WORK:
            break
        if found and (comm.group != found[0].group or _talks(comm) != _talks(found[0])):
            break
        found.insert(0, comm)
    return found


def _talks(comm: Comm) -> bool:
    return comm.kind in _POINT_TO_POINT


def _only(values: set[T]) -> T | None:
    """Return the only value; None where they differ."""
    return next(iter(values)) if len(values) == 1 else None


def _lacks(comm: Comm) -> bool:
    """Whether the call may say what the kernel does not."""
    without_peer = comm.kind in _POINT_TO_POINT and comm.peer is None
    return comm.group is None or not comm.group.ranks or without_peer


def _total(sizes: Sequence[int]) -> int:
    return ABSENT if ABSENT in sizes else sum(sizes)
