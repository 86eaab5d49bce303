"""How far the ranks' clocks are apart, as collectives tell it: ranks of one host together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tracehunch.report.ranks_words import ranks_text
from tracehunch.units import time_range_us, time_us

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import Clock, Ranks


@dataclass(frozen=True, slots=True)
class ClockText:
    """Clocks of ranks that stand alike, in words."""

    ranks: str
    offset: str
    error: str
    collectives: str


def reference_rank(ranks: Ranks) -> int | None:
    """Return the rank whose clock the others are held against; None where there are no clocks."""
    exact = [one.rank for one in ranks.clocks if not one.offset_ns and not one.error_ns and one.collectives]
    zero = exact or [one.rank for one in ranks.clocks if not one.offset_ns and not one.error_ns]
    return min(zero, default=None)


def clock_texts(ranks: Ranks) -> list[ClockText]:
    """Return neighbours whose clocks agree within their errors as one line each, by rank."""
    reference = reference_rank(ranks)
    runs: list[list[Clock]] = []
    for one in sorted(ranks.clocks, key=lambda clock: clock.rank):
        if one.rank == reference or not one.collectives:
            continue
        if runs and _alike(runs[-1], one):
            runs[-1].append(one)
        else:
            runs.append([one])
    return [_text(run) for run in runs]


def untied(ranks: Ranks) -> list[int]:
    """Return the ranks whose clock no collective ties to the others."""
    reference = reference_rank(ranks)
    return [one.rank for one in ranks.clocks if not one.collectives and one.rank != reference]


def untied_text(ranks: Ranks) -> str:
    """Say whose clocks cannot be told; "" where all can."""
    lost = untied(ranks)
    if not lost:
        return ""
    return (
        f"clock of {ranks_text(lost)}: no collective that ends on all ranks at once ties it to the others. "
        "It is taken to be right, as it is on the same host: else waits and skew are not"
    )


def largest_error_ns(ranks: Ranks) -> int:
    """Return the largest error of a clock that collectives tell."""
    return max((one.error_ns for one in ranks.clocks if one.collectives), default=0)


def _alike(run: Sequence[Clock], one: Clock) -> bool:
    first = run[0]
    near = abs(one.offset_ns - first.offset_ns) <= max(first.error_ns + one.error_ns, 1_000)
    return near and one.rank == run[-1].rank + 1


def _text(run: Sequence[Clock]) -> ClockText:
    offsets = [one.offset_ns / 1e3 for one in run]
    low, high = min(offsets), max(offsets)
    ahead = all(one >= 0 for one in offsets)
    behind = all(one <= 0 for one in offsets)
    if ahead or behind:
        span = time_range_us(*sorted((abs(low), abs(high))))
        said = "the same" if not any(offsets) else f"{span} {'ahead' if ahead else 'behind'}"
    else:
        said = f"{time_us(-low)} behind to {time_us(high)} ahead"
    drifts = max((one.drift_ppm for one in run), key=abs)
    said += f", {'gains' if drifts > 0 else 'loses'} {time_us(abs(drifts))} a second" if drifts else ""
    fewest, most = min(one.collectives for one in run), max(one.collectives for one in run)
    return ClockText(
        ranks=ranks_text(one.rank for one in run),
        offset=said,
        error=f"+-{time_us(max(one.error_ns for one in run) / 1e3)}",
        collectives=f"{fewest:,}" if fewest == most else f"{fewest:,}-{most:,}",
    )
