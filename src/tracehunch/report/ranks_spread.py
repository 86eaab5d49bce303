"""How a number is spread over many ranks: least, median, most, and the shape between."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from tracehunch.report.ranks_rows import quantities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import RankRow
    from tracehunch.report.ranks_rows import Quantity

BINS: Final = 12
_UNICODE: Final = " ▁▂▃▄▅▆▇█"
_ASCII: Final = " .:-=+*#@"


@dataclass(frozen=True, slots=True)
class Spread:
    """One quantity over all ranks that have it, in words; ``counts`` are ranks a bin, from least to most."""

    name: str
    least: str
    least_rank: int
    middle: str
    most: str
    most_rank: int
    counts: tuple[int, ...]


def spreads(rows: Sequence[RankRow]) -> list[Spread]:
    """Return the quantities in which ranks differ by more than is printed."""
    found = [_spread(rows, one) for one in quantities(rows)]
    return [one for one in found if one is not None]


def _spread(rows: Sequence[RankRow], quantity: Quantity) -> Spread | None:
    known = sorted((value, row.rank) for row in rows if (value := quantity.value(row)) is not None)
    if len(known) < 2:
        return None
    (least, least_rank), (most, most_rank) = known[0], known[-1]
    middle = median(value for value, _ in known)
    texts = quantity.texts([least, middle, most])
    if texts[0] == texts[2]:
        return None
    counts = [0] * BINS
    for value, _ in known:
        counts[min(int(BINS * (value - least) / (most - least)), BINS - 1)] += 1
    return Spread(quantity.name, texts[0], least_rank, texts[1], texts[2], most_rank, tuple(counts))


def shape(counts: Sequence[int], *, unicode: bool) -> str:
    """Return a histogram in one line; a bin with any rank in it is never blank."""
    marks = _UNICODE if unicode else _ASCII
    tallest = max(counts)
    steps = len(marks) - 1
    return "".join(marks[-(-steps * one // tallest)] for one in counts)
