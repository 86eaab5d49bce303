"""One call of a collective as ``record_param_comms`` writes it: on the op, and again on its kernels.

Which keys there are depends on the version of PyTorch: old ones have none of them, then came the name, the
sizes and the size of the group, then the group's name and ranks (a list that is cut after 30), then its
description and the other side of a send or receive, and last, between 2.11 and 2.13, the sequence number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from tracehunch.checks.straggler import ELEMENT_BYTES
from tracehunch.compare.ranks.model import Group
from tracehunch.compare.ranks.origin import groups_of, rank_of
from tracehunch.trace.header import whole
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.trace.model import Header

OP: Final = "record_param_comms"
_LONGEST: Final = 200
_MOST_BYTES: Final = 2**62
_MOST_RANKS: Final = 100_000
_RANKS: Final = re.compile(r"\[\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)?\s*\]")
_POINT_TO_POINT: Final = {"send": "Dst Rank", "recv": "Src Rank"}


@dataclass(frozen=True, slots=True)
class Comm:
    """What one call says of itself; None, "" or ABSENT where it does not."""

    kind: str
    group: Group | None
    dtype: str
    in_bytes: int
    out_bytes: int
    sequence: int
    peer: int | None = None  # global rank of the other side of a send or receive


@dataclass(frozen=True, slots=True)
class Job:
    """What a file's header says of the job: the groups by name, which list all ranks of large ones."""

    rank: int | None
    world_size: int | None
    groups: Mapping[str, Group]

    @classmethod
    def of(cls, header: Header) -> Self:
        """Return the job of a header."""
        groups = {group.name: group for group in groups_of(header)}
        return cls(rank_of(header)[0], header.world_size, groups)


def comm_of(args: Mapping[str, Any], job: Job) -> Comm | None:
    """Return the call that args describe; None where they describe none."""
    kind = args.get("Collective name")
    if not isinstance(kind, str) or not kind:
        return None
    dtype = args.get("dtype")
    dtype = dtype[:_LONGEST] if isinstance(dtype, str) else ""
    sequence = whole(args.get("Seq"))
    return Comm(
        kind=kind[:_LONGEST],
        group=_group(args, job),
        dtype=dtype,
        in_bytes=_bytes(args.get("In msg nelems"), dtype),
        out_bytes=_bytes(args.get("Out msg nelems"), dtype),
        sequence=ABSENT if sequence is None else sequence,
        peer=whole(args.get(_POINT_TO_POINT[kind])) if kind in _POINT_TO_POINT else None,
    )


def _bytes(elements: Any, dtype: str) -> int:
    size, number = ELEMENT_BYTES.get(dtype), whole(elements)
    return ABSENT if size is None or number is None or number * size > _MOST_BYTES else number * size


def _group(args: Mapping[str, Any], job: Job) -> Group | None:
    """Return the group; one that is not named is known where it can only be that of all ranks."""
    name, size = args.get("Process Group Name"), whole(args.get("Group size")) or None
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name:
        everybody = size is not None and size == job.world_size and size <= _MOST_RANKS
        return Group("", ranks=tuple(range(size or 0)), size=size) if everybody else None
    name = name[:_LONGEST]
    known = job.groups.get(name, Group(name))
    stated = _ranks(args.get("Process Group Ranks")) or (known.ranks if known.size == size else ())
    ranks = stated or _strided(args, size)
    description = args.get("Process Group Description")
    description = description[:_LONGEST] if isinstance(description, str) else known.description
    return Group(name, description, ranks, size or len(ranks) or None)


def _ranks(text: Any) -> tuple[int, ...]:
    """Return the ranks of ``"[0, 1]"``; none where the list was cut (``"[0, 1, ..., 63]"``)."""
    if isinstance(text, list):
        text = str(text)
    found = _RANKS.fullmatch(text) if isinstance(text, str) else None
    return tuple(map(int, found[1].split(","))) if found and found[1] else ()


def _strided(args: Mapping[str, Any], size: int | None) -> tuple[int, ...]:
    """Return the ranks of a group that are evenly spaced, as the op states their start and stride."""
    start, stride = whole(args.get("Global rank start")), whole(args.get("Global rank stride"))
    if start is None or not stride or size is None or size > _MOST_RANKS:
        return ()
    return tuple(range(start, start + size * stride, stride))
