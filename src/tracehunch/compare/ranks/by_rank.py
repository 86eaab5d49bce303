"""A small mapping from ranks to whole numbers, two slices of arrays: millions of them have to fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.trace.model import Int64


class ByRank(Mapping[int, int]):
    """Rank -> number; ``ranks`` ascend."""

    __slots__ = ("_ranks", "_values")

    def __init__(self, ranks: Int64, values: Int64) -> None:
        self._ranks, self._values = ranks, values

    def __getitem__(self, rank: int) -> int:
        at = int(self._ranks.searchsorted(rank))
        if at == len(self._ranks) or self._ranks[at] != rank:
            raise KeyError(rank)
        return int(self._values[at])

    def __iter__(self) -> Iterator[int]:
        return iter(self._ranks.tolist())

    def __len__(self) -> int:
        return len(self._ranks)

    def __repr__(self) -> str:
        return repr(dict(self))
