"""GPU time of kernels that run beside no collective, of the same kernels in every call.

A collective's kernel holds a part of the GPU while it waits for other ranks, so kernels beside it are slower.
Which rank waits depends on who runs ahead, and that may change while nothing about the program or the GPU
does. Kernels that run alone in nearly all calls tell whether the GPU itself became slower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tracehunch.compare.over_time.model import COMPUTE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tracehunch.compare.over_time.model import ScopeCalls
    from tracehunch.facts.activities import Activities
    from tracehunch.trace.model import Float64, Int64

_NEARLY_ALL: Final = 0.9
"""Share of the calls in which a kernel has to run alone."""
_HALF: Final = 0.5
"""Share of those kernels that a call has to have."""
_LEAST_BESIDE: Final = 0.01
"""Share of the time beside collectives up to which it is as good as none."""
_PLACES: Final = 1 << 32


def alone_us(gpu: Activities, collective: NDArray[np.bool_]) -> Float64:
    """Return the length of each activity (us); nan of collectives and of what overlaps one on its GPU."""
    alone = ~collective
    for device in np.unique(gpu.device[collective]).tolist():
        here = gpu.device == device
        start, end = _merged(gpu.start_ns[here & collective], gpu.dur_ns[here & collective])
        rows = np.flatnonzero(here & ~collective)
        at = np.searchsorted(end, gpu.start_ns[rows], "right")
        begins = np.append(start, np.iinfo(np.int64).max)[at]
        alone[rows] = begins >= gpu.start_ns[rows] + gpu.dur_ns[rows]
    return np.where(alone, gpu.dur_ns / 1e3, np.nan).astype(np.float64)


def _merged(start: Int64, length: Int64) -> tuple[Int64, Int64]:
    """Return the stretches in which one or more run, apart and in order."""
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate((start + length)[order])
    new = np.append(True, start[1:] > end[:-1])
    return start[new], end[np.append(np.flatnonzero(new)[1:] - 1, end.size - 1)]


def occurrences(count: Int64, at: Int64) -> Int64:
    """Return where the occurrences of some uses are, if those of all uses lie one after the other."""
    first, n = np.cumsum(count) - count, count[at]
    return np.repeat(first[at] - (np.cumsum(n) - n), n) + np.arange(n.sum())


def steady_us(parts: Sequence[ScopeCalls]) -> dict[str, Float64] | None:
    """Return per name the time in each call (us) of the kernels that run alone in nearly all calls.

    A kernel is the same one in two calls by its name and its place among those of its name. nan for calls
    that lack most of them; nothing at all in the dict if no kernel runs alone in nearly all calls; None where
    no kernel runs beside a collective, so that there is nothing to tell apart.
    """
    names: dict[str, int] = {}
    rows, kernels, lengths, before = [], [], [], 0
    for one in parts:
        uses = one.uses
        code = np.array([names.setdefault(name, len(names)) for name in uses.names], dtype=np.int64)
        if uses.alone_us.size:
            ordinal = np.arange(uses.count.sum()) - np.repeat(np.cumsum(uses.count) - uses.count, uses.count)
            rows.append(np.repeat(uses.call + before, uses.count))
            kernels.append(np.repeat(code[uses.name], uses.count) * _PLACES + ordinal)
            lengths.append(uses.alone_us)
        before += len(one)
    if not rows or not any(_some_beside(one) for one in parts):
        return None
    row, kernel, length = np.concatenate(rows), np.concatenate(kernels), np.concatenate(lengths)
    known = ~np.isnan(length)
    times = _table(row[known], kernel[known], length[known], before)
    return _by_name(*times, list(names))


def _some_beside(one: ScopeCalls) -> bool:
    """Tell whether more is missing than the collectives, so that kernels overlap them."""
    compute = one.values.get(COMPUTE)
    if compute is None or not one.uses.alone_us.size:
        return False
    whole = float(np.nansum(compute))
    return whole - float(np.nansum(one.uses.alone_us)) > _LEAST_BESIDE * whole


def _table(row: Int64, kernel: Int64, length: Float64, n: int) -> tuple[Float64, Int64]:
    """Return (call, kernel): time, of the kernels that nearly all of ``n`` calls have; and these kernels."""
    found, column, seen = np.unique(kernel, return_inverse=True, return_counts=True)
    chosen = np.flatnonzero(seen >= _NEARLY_ALL * n)
    place = np.full(found.size, -1, dtype=np.int64)
    place[chosen] = np.arange(chosen.size)
    column = place[column.reshape(-1)]
    times = np.full((n, chosen.size), np.nan)
    times[row[column >= 0], column[column >= 0]] = length[column >= 0]
    return times, found[chosen]


def _by_name(times: Float64, kernel: Int64, names: Sequence[str]) -> dict[str, Float64]:
    """Sum the kernels of each name; the few that are missing take what they usually do."""
    if not kernel.size:
        return {}
    missing = np.isnan(times)
    times = np.where(missing, np.nanmedian(times, axis=0), times)
    times[missing.mean(axis=1) > 1 - _HALF] = np.nan
    code = kernel // _PLACES
    first = np.flatnonzero(np.diff(code, prepend=-1))
    sums = np.add.reduceat(times, first, axis=1)
    return {names[one]: sums[:, at] for at, one in enumerate(code[first].tolist())}


def total_us(by_name: Mapping[str, Float64], n: int) -> Float64:
    """Return the time of all names in each of ``n`` calls; nan where there are none."""
    return np.sum(list(by_name.values()), axis=0) if by_name else np.full(n, np.nan)
