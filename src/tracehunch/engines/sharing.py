"""What all ranks of a job say alike is kept once: ten thousand lists of ten thousand ranks are gigabytes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tracehunch.compare.ranks.model import Examined, Unread

if TYPE_CHECKING:
    from tracehunch.compare.ranks.model import Group


class Sharing:
    """Replaces groups by equal ones that came before."""

    def __init__(self) -> None:
        self._groups: dict[Group, Group] = {}

    def of(self, one: Examined) -> Examined:
        """Return what is equal to ``one``, and shares what others have, too."""
        if isinstance(one, Unread):
            return one
        collectives = replace(one.collectives, groups=tuple(map(self._known, one.collectives.groups)))
        return replace(one, groups=tuple(map(self._known, one.groups)), collectives=collectives)

    def _known(self, group: Group) -> Group:
        return self._groups.setdefault(group, group)
