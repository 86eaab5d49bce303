"""Process groups of one kind: all the tensor-parallel ones, all the data-parallel ones ..."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.ranks.jobs import named
from tracehunch.units import plural, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Group

_UNNAMED: Final = ("", "undefined")
_LABEL: Final = 40
_MOST_NAMES: Final = 4
"""Descriptions of groups of one shape that tell kinds apart; more of them number the groups."""


@dataclass(frozen=True, slots=True)
class GroupKinds:
    """``code`` is the kind of each group, ``labels`` what each kind is called."""

    code: tuple[int, ...]
    labels: tuple[str, ...]


def group_kinds(groups: Sequence[Group]) -> GroupKinds:
    """Sort groups by size and by how far apart their ranks are, and then by what they are called."""
    names: dict[object, set[str]] = defaultdict(set)
    for one in groups:
        names[_shape(one)].add(_name(one))
    members: dict[tuple[object, str], list[int]] = defaultdict(list)
    for at, one in enumerate(groups):
        shape = _shape(one)
        members[shape, _name(one) if len(names[shape]) <= _MOST_NAMES else ""].append(at)
    code = [0] * len(groups)
    for number, mine in enumerate(members.values()):
        for at in mine:
            code[at] = number
    labels = tuple(_label(name, [groups[at] for at in mine]) for (_, name), mine in members.items())
    return GroupKinds(tuple(code), labels)


def _shape(group: Group) -> tuple[int | None, int | None]:
    return group.size, _stride(group)


def _stride(group: Group) -> int | None:
    """Return how far apart its ranks are; None where they are not listed, 0 where they are uneven."""
    if len(group.ranks) < 2:  # ranks
        return None
    steps = np.unique(np.diff(sorted(group.ranks)))
    return int(steps[0]) if steps.size == 1 else 0


def _name(group: Group) -> str:
    """Return its description without a number at its end, and without one that torch makes up."""
    name = group.description.split(":")[0].rstrip("0123456789_-. ")
    return "" if name in _UNNAMED else name


def _label(name: str, mine: Sequence[Group]) -> str:
    if name:
        return printable(name, _LABEL)
    if len(mine) == 1:
        return named(mine[0].ranks) if mine[0].ranks else ""
    stride = _stride(mine[0])
    return f"{plural(len(mine), 'group')}{f' of stride {stride}' if stride else ''}"
