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

OVERLAP: Final = "overlap: of all communication, the part that compute hides (as in HTA); compute has it."
"""What stands below a table of ranks."""

_MOST_ODD: Final = 4  # ranks with odd facts that are picked among many


@dataclass(frozen=True, slots=True)
class RankText:
    """One rank in words; "?" where a number cannot be told.

    Shares are of the rank's window, but ``overlapped``, which is of its communication. ``waits`` and
    ``delays`` are a step where all ranks have steps (``per_step``), else sums.
    """

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


def per_step(rows: Sequence[RankRow]) -> bool:
    """Whether waits and delays are told a step: every rank has steps."""
    return bool(rows) and all(row.steps for row in rows)


def rank_words(*, each: bool) -> str:
    """Say what the numbers of the table are of."""
    return f"shares of the recorded window; waits and delays {'a step' if each else 'are sums over it'}"


def a_step_us(row: RankRow, ns: int | None, *, each: bool) -> float | None:
    """Return a time of the whole recording, or what of it falls to ``each`` step."""
    return None if ns is None else ns / 1e3 / (row.steps if each else 1)


def overlap(row: RankRow) -> float | None:
    """Return the part of communication that runs beside compute; None where there is no communication."""
    return row.overlapped_ns / row.communication_ns if has_breakdown(row) and row.communication_ns else None


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


def rank_texts(rows: Sequence[RankRow], whys: Sequence[str] = (), *, each: bool = False) -> list[RankText]:
    """Return the rows in words, ``whys`` say why each is shown; with ``each``, waits are a step."""
    windows = time_column([_us(row.window_ns or None) for row in rows])
    return [
        RankText(
            rank=str(row.rank),
            steps=str(row.steps) if row.steps else UNKNOWN,
            step=UNKNOWN if row.step_us is None else time_us(row.step_us),
            window=windows[at] or UNKNOWN,
            compute=_share(row, row.compute_ns),
            exposed=_share(row, row.exposed_communication_ns),
            overlapped=_overlap(row),
            copies=_share(row, row.copy_ns),
            idle=_share(row, idle_ns(row)),
            idle_cause=_cause(row),
            waits=_time(a_step_us(row, row.waited_ns, each=each)),
            delays=_time(a_step_us(row, row.made_wait_ns, each=each)),
            why=whys[at] if whys else "",
        )
        for at, row in enumerate(rows)
    ]


def _time(value_us: float | None) -> str:
    """Return a time in a unit of its own: within a column, one rank may wait a million times as long."""
    return UNKNOWN if value_us is None else time_us(value_us)


def _overlap(row: RankRow) -> str:
    return share(row.overlapped_ns, row.communication_ns) if has_breakdown(row) else UNKNOWN


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


def _percent_overlap(row: RankRow) -> float | None:
    part = overlap(row)
    return None if part is None else 100 * part


def quantities(rows: Sequence[RankRow]) -> tuple[Quantity, ...]:
    """Return the numbers in which ranks are held against each other, as the table of ranks has them."""
    each = per_step(rows)
    return (
        Quantity("host step", lambda row: row.step_us, _times),
        Quantity("compute", _of_window(lambda row: row.compute_ns), _percents),
        Quantity("exposed", _of_window(lambda row: row.exposed_communication_ns), _percents),
        Quantity("copies", _of_window(lambda row: row.copy_ns), _percents),
        Quantity("idle", _of_window(idle_ns), _percents),
        Quantity("waits", lambda row: a_step_us(row, row.waited_ns, each=each), _times),
        Quantity("delays", lambda row: a_step_us(row, row.made_wait_ns, each=each), _times),
        Quantity("overlap", _percent_overlap, _percents),
    )


# What makes a rank worth its line among many, the most telling first.
_EXTREMES: Final[tuple[tuple[str, int, str], ...]] = (
    ("delays", 1, "delays the others most"),
    ("host step", 1, "longest host step"),
    ("compute", 1, "most compute"),
    ("idle", 1, "most idle"),
    ("exposed", 1, "most exposed communication"),
    ("copies", 1, "most copies"),
    ("waits", 1, "waits for others most"),
    ("compute", -1, "least compute"),
    ("host step", -1, "shortest host step"),
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
    whys.setdefault(usual.rank, []).append("the usual rank: median host step")
    rows = [row for row in ranks.rows if row.rank in whys]
    return rows, [", ".join(whys[row.rank]) for row in rows]


def _extreme(rows: Sequence[RankRow], name: str, sign: int) -> RankRow | None:
    """Return the rank with the most (sign 1) or least of a quantity; None where all read alike."""
    quantity = next(one for one in quantities(rows) if one.name == name)
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
