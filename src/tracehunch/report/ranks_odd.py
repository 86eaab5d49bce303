"""Facts in which one rank is unlike the others, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehunch.facts.vocabulary import KEYS
from tracehunch.report.verdict_text import value_text
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Odd, Ranks
    from tracehunch.facts.model import Value


@dataclass(frozen=True, slots=True)
class OddText:
    """One fact of one rank, in words; ``alike`` ranks have the usual value."""

    rank: str
    scope: str
    key: str
    seen: str
    usual: str
    alike: str


def odd_texts(ranks: Ranks) -> list[OddText]:
    """Return the facts, as ranked."""
    return [_text(one) for one in ranks.odd]


def odd_table(ranks: Ranks, texts: Sequence[OddText]) -> tuple[str, list[str], list[list[str]]]:
    """Return title, headings and cells: of two ranks neither is the odd one, so both have a column."""
    numbers = [row.rank for row in ranks.rows]
    if len(numbers) == 2:  # ranks
        heads = ["fact", *(f"rank {rank}" for rank in numbers), "scope"]
        pairs = [[t.seen, t.usual] if t.rank == str(numbers[0]) else [t.usual, t.seen] for t in texts]
        cells = [[t.key, *pair, t.scope] for t, pair in zip(texts, pairs, strict=True)]
        return "Where the two ranks differ", heads, cells
    title = "Unlike the other ranks" if any(one.has_majority for one in ranks.odd) else "Where ranks differ"
    heads = ["rank", "fact", "here", "median rank", "ranks so", "scope"]
    return title, heads, [[t.rank, t.key, t.seen, t.usual, t.alike, t.scope] for t in texts]


def _text(one: Odd) -> OddText:
    return OddText(
        rank=str(one.rank),
        scope=printable(one.scope),
        key=printable(one.key),
        seen=_value(one.key, one.seen),
        usual=_value(one.key, one.median),
        alike=f"{one.ranks:,}",
    )


def _value(key: str, value: Value) -> str:
    return value_text(value, _UNITS.get(key, "us" if key.endswith("_us") else "count"))


_UNITS = {name: key.unit for key in KEYS.values() for name in (key.name, key.json_name)}
