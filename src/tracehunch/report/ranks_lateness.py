"""How late each rank came to each collective, in few enough cells to see: skew over the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Matched, Ranks

COLUMNS: Final = 240
ROWS: Final = 256
"""Cells that a picture has at most; a cell of several ranks or collectives shows the latest arrival."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """Ranks down, collectives across, in order of time.

    ``ranks`` and ``collectives`` are the first and last of each row and column (collectives counted from 0),
    ``steps`` the profiler steps of a column where they are known. ``late_us`` is the time from the first
    rank's arrival to this one's; None where a rank took no part.
    """

    ranks: tuple[tuple[int, int], ...]
    collectives: tuple[tuple[int, int], ...]
    steps: tuple[tuple[int, int] | None, ...]
    late_us: tuple[tuple[float | None, ...], ...]


def lateness(ranks: Ranks, *, columns: int = COLUMNS, rows: int = ROWS) -> Lateness | None:
    """Return the cells; None where nothing was matched."""
    if not ranks.matched:
        return None
    ordered = sorted(ranks.matched, key=lambda one: (one.first_start_ns, one.group, one.number))
    across = _runs(len(ordered), columns)
    numbers = [row.rank for row in ranks.rows]
    down = _runs(len(numbers), rows)
    row_of = {rank: at for at, (first, last) in enumerate(down) for rank in numbers[first : last + 1]}
    filled = [_column(ordered[first : last + 1], row_of, len(down)) for first, last in across]
    return Lateness(
        ranks=tuple((numbers[first], numbers[last]) for first, last in down),
        collectives=tuple(across),
        steps=tuple(_steps(ordered[first : last + 1]) for first, last in across),
        late_us=tuple(zip(*filled, strict=True)),
    )


def _runs(n: int, most: int) -> list[tuple[int, int]]:
    """Return first and last of at most so many neighbours of about the same length."""
    pieces = min(n, most)
    return [(n * at // pieces, n * (at + 1) // pieces - 1) for at in range(pieces)]


def _column(found: Sequence[Matched], row_of: dict[int, int], n_rows: int) -> list[float | None]:
    cells: list[float | None] = [None] * n_rows
    for one in found:
        for rank, waited_ns in one.waited_ns.items():
            row = row_of.get(rank)
            if row is not None:
                cells[row] = max(cells[row] or 0.0, (one.skew_ns - waited_ns) / 1e3)
    return cells


def _steps(found: Sequence[Matched]) -> tuple[int, int] | None:
    known = [one.step for one in found if one.step is not None]
    return (min(known), max(known)) if known else None
