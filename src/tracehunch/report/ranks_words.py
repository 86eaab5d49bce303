"""Ranks, idle causes and collectives in words, whatever format they are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.units import printable, size, time_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_IDLE: Final[Mapping[str, str]] = {
    "profiler": "the profiler's own work",
    "compile": "torch.compile at work",
    "first-use": "loading code, first use",
    "allocation": "memory allocation",
    "library": "an op computed on the host",
    "stall": "host code outside PyTorch",
    "copy": "a pageable copy held the host",
    "sync": "the host waited for the GPU",
    "launch": "waiting for launches",
    "device": "between two activities",
    "unknown": "cause not recorded",
}
_RUNS: Final = 6
"""Pieces of a list of ranks that a sentence takes."""

UNKNOWN: Final = "?"
"""Stands in a table where a number cannot be told."""


def idle_words(cause: str) -> str:
    """Return why a GPU was idle; a cause that has no words yet stands for itself."""
    return _IDLE.get(cause.lower().replace("_", "-"), printable(cause))


def ranks_text(ranks: Iterable[int]) -> str:
    """``rank 3``; ``ranks 0-3, 9, 11 and 4 more``."""
    found = sorted(set(ranks))
    runs: list[list[int]] = []
    for one in found:
        if runs and one == runs[-1][-1] + 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    if not runs:
        return "no rank"
    more = sum(len(run) for run in runs[_RUNS:])
    shown = ", ".join(_run(run) for run in runs[:_RUNS]) + (f" and {more} more" if more else "")
    return f"rank {shown}" if len(found) == 1 else f"ranks {shown}"


def _run(run: Sequence[int]) -> str:
    return str(run[0]) if len(run) == 1 else f"{run[0]}{', ' if len(run) == 2 else '-'}{run[-1]}"


def bytes_text(least: int | None, most: int | None) -> str:
    """Return the sizes of messages as ``25 MiB`` or ``16-25 MiB``; where no file says them, so much."""
    if least is None or most is None:
        return UNKNOWN
    first, last = size(least), size(most)
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number}-{last}" if last.endswith(f" {unit}") else f"{first}-{last}"


def within(value_us: float, error_us: float) -> str:
    """``12.3 us (+-0.4 us)``: a value with its error."""
    return f"{time_us(value_us)} (+-{time_us(error_us)})"
