"""Ranks whose file is not whole: what they lack says nothing about the rank, nor about the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.jobs import Member

_CUT: Final = frozenset({"truncated", "truncated-compression", "damaged-compression", "no-events"})
_DAMAGED: Final = _CUT | {"damaged-event", "steps-without-gpu"}


def is_cut(member: Member) -> bool:
    """Whether a file of a rank breaks off: of its GPU, written last, a part is missing or all."""
    return _has(member, _CUT)


def is_blind(member: Member) -> bool:
    """Whether no GPU activity was recorded."""
    return not any(file.breakdown for file in member.files)


def comparable(members: Sequence[Member]) -> list[int]:
    """Return the positions of ranks whose time can be laid beside that of others."""
    all_blind = all(is_blind(member) for member in members)
    return [at for at, one in enumerate(members) if not is_cut(one) and (all_blind or not is_blind(one))]


def undamaged(members: Sequence[Member]) -> list[int]:
    """Return those of them whose counts can be, too: nothing was lost."""
    return [at for at in comparable(members) if not _has(members[at], _DAMAGED)]


def _has(member: Member, codes: frozenset[str]) -> bool:
    return any(one.code in codes for file in member.files for one in file.notices)
