"""One line a rank: where its time went, and which ranks a report shows when there are many."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from tracehunch.report.ranks_words import UNKNOWN, idle_words
from tracehunch.units import percent, share, time_column, time_us

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.compare.ranks.model import RankRow, Ranks

FEW: Final = 16
"""Ranks up to which each has its line, unless told otherwise."""

_MOST_ODD: Final = 4  # ranks with odd facts that are picked among many


@dataclass(frozen=True, slots=True)
class RankText:
    """One rank in words. Shares are of the rank's window; "?" where a number cannot be told."""

    rank: str
    steps: str
    step: str
    window: str
    compute: str
    exposed: str
    overlapped: str
    copies: str
    idle: str
    idle_cause: str
    waits: str
    delays: str
    why: str


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that every rank has: what it is called, its value, and how values of one column read."""

    name: str
    value: Callable[[RankRow], float | None]
    texts: Callable[[Sequence[float | None]], list[str]]


def has_breakdown(row: RankRow) -> bool:
    """Whether GPU activity was recorded, without which nobody can tell where the time went."""
    return row.compute_ns + row.exposed_communication_ns + row.copy_ns > 0


def idle_ns(row: RankRow) -> int:
    """All idle time of a rank."""
    return sum(row.idle_ns.values())


def main_idle_cause(row: RankRow) -> tuple[str, int] | None:
    """Return the cause of most of a rank's idle time, with that time; None where it never idled."""
    causes = sorted(row.idle_ns.items(), key=lambda one: (-one[1], one[0]))
    return causes[0] if has_breakdown(row) and causes and causes[0][1] > 0 else None


def rank_texts(rows: Sequence[RankRow], whys: Sequence[str] = ()) -> list[RankText]:
    """Return the rows in words, ``whys`` say why each is shown."""
    windows = time_column([_us(row.window_ns or None) for row in rows])
    return [
        RankText(
            rank=str(row.rank),
            steps=str(row.steps) if row.steps else UNKNOWN,
            step=UNKNOWN if row.step_us is None else time_us(row.step_us),
            window=windows[at] or UNKNOWN,
            compute=_share(row, row.compute_ns),
            exposed=_share(row, row.exposed_communication_ns),
            overlapped=_share(row, row.overlapped_ns),
            copies=_share(row, row.copy_ns),
            idle=_share(row, idle_ns(row)),
            idle_cause=_cause(row),
            waits=_time(row.waited_ns),
            delays=_time(row.made_wait_ns),
            why=whys[at] if whys else "",
        )
        for at, row in enumerate(rows)
    ]


def _time(ns: int | None) -> str:
    """Return a time in a unit of its own: within a column, one rank may wait a million times as long."""
    return UNKNOWN if ns is None else time_us(ns / 1e3)


def _times(values: Sequence[float | None]) -> list[str]:
    return ["" if value is None else time_us(value) for value in values]


def _us(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e3


def _share(row: RankRow, ns: int) -> str:
    return share(ns, row.window_ns) if has_breakdown(row) else UNKNOWN


def _cause(row: RankRow) -> str:
    found = main_idle_cause(row)
    return "" if found is None else f"{share(found[1], row.window_ns)} {idle_words(found[0])}"


def _of_window(part: Callable[[RankRow], int]) -> Callable[[RankRow], float | None]:
    return lambda row: 100 * part(row) / row.window_ns if has_breakdown(row) and row.window_ns else None


def _percents(values: Sequence[float | None]) -> list[str]:
    return ["" if value is None else percent(value) for value in values]


QUANTITIES: Final = (
    Quantity("step", lambda row: row.step_us, _times),
    Quantity("compute", _of_window(lambda row: row.compute_ns), _percents),
    Quantity("exposed", _of_window(lambda row: row.exposed_communication_ns), _percents),
    Quantity("overlap", _of_window(lambda row: row.overlapped_ns), _percents),
    Quantity("copies", _of_window(lambda row: row.copy_ns), _percents),
    Quantity("idle", _of_window(idle_ns), _percents),
    Quantity("waits", lambda row: _us(row.waited_ns), _times),
    Quantity("delays", lambda row: _us(row.made_wait_ns), _times),
)

# What makes a rank worth its line among many, the most telling first.
_EXTREMES: Final[tuple[tuple[str, int, str], ...]] = (
    ("delays", 1, "delays the others most"),
    ("step", 1, "longest step"),
    ("compute", 1, "most compute"),
    ("idle", 1, "most idle"),
    ("exposed", 1, "most exposed communication"),
    ("copies", 1, "most copies"),
    ("waits", 1, "waits for others most"),
    ("compute", -1, "least compute"),
    ("step", -1, "shortest step"),
)


def shown_ranks(ranks: Ranks, *, all_ranks: bool = False) -> tuple[list[RankRow], list[str]]:
    """Return the ranks that a report shows, and why each: all of few, of many what stands out."""
    if all_ranks or len(ranks.rows) <= FEW:
        return list(ranks.rows), [""] * len(ranks.rows)
    whys: dict[int, list[str]] = {}
    for name, sign, why in _EXTREMES:
        row = _extreme(ranks.rows, name, sign)
        if row is not None:
            whys.setdefault(row.rank, []).append(why)
    odd = dict.fromkeys(one.rank for one in ranks.odd)
    for rank in list(odd)[:_MOST_ODD]:
        whys.setdefault(rank, []).append("unlike the others, see below")
    usual = _usual(ranks.rows)
    whys.setdefault(usual.rank, []).append("the usual rank: median step")
    rows = [row for row in ranks.rows if row.rank in whys]
    return rows, [", ".join(whys[row.rank]) for row in rows]


def _extreme(rows: Sequence[RankRow], name: str, sign: int) -> RankRow | None:
    """Return the rank with the most (sign 1) or least of a quantity; None where all read alike."""
    quantity = next(one for one in QUANTITIES if one.name == name)
    known = [(found, row) for row in rows if (found := quantity.value(row)) is not None]
    ends = [pick(found for found, _ in known) for pick in (min, max)] if known else []
    if len(set(quantity.texts(ends))) < 2:
        return None
    return max(known, key=lambda pair: (sign * pair[0], -pair[1].rank))[1]


def _usual(rows: Sequence[RankRow]) -> RankRow:
    """Return the rank whose step (else compute) is nearest the median."""
    timed = [row.step_us if row.step_us is not None else row.compute_ns / 1e3 for row in rows]
    middle = median(timed)
    return min(zip(timed, rows, strict=True), key=lambda pair: (abs(pair[0] - middle), pair[1].rank))[1]


def usual_rank(ranks: Ranks, besides: int) -> RankRow | None:
    """Return the rank nearest the median, other than one; None where there is no other."""
    others = [row for row in ranks.rows if row.rank != besides]
    return _usual(others) if others else None
