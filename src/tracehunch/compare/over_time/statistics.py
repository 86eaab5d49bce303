"""Tests for a change in a noisy series that need few assumptions; numpy only.

A step: Student's t between the two sides over batches (Student 1908; batch means after Conway 1963), with
Bonferroni's correction for the places where it might be. A trend: Theil-Sen's slope (Theil 1950, Sen 1968)
against its residuals, borne out by Mann-Kendall (Mann 1945, Kendall 1975). Neighbours that are alike make
less evidence: both are weakened by the lag-1 correlation of what is left (Bayley and Hammersley 1946).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tracehunch.trace.model import Float64

_LEAST_P = 1e-12  # below, the sums that make it are rounding


def t_tail(t: float, freedom: int) -> float:
    """Two-sided chance of a Student's t at least as far from 0 (Abramowitz and Stegun 26.7.3, 26.7.4)."""
    theta = math.atan(abs(t) / math.sqrt(freedom))
    sine, cosine = math.sin(theta), math.cos(theta)
    odd = freedom % 2
    term = total = cosine if odd else 1.0
    for k in range(2 if odd else 1, freedom - 1, 2):
        term *= cosine * cosine * k / (k + 1)
        total += term
    inside = 2 / math.pi * (theta + sine * (total if freedom > 1 else 0.0)) if odd else sine * total
    return max(1 - inside, _LEAST_P)


def normal_tail(z: float) -> float:
    """Two-sided chance of a normal value at least as far from 0."""
    return max(math.erfc(abs(z) / math.sqrt(2)), _LEAST_P)


def evidence_left(residuals: Float64) -> float:
    """Share of the values that count as independent, by the lag-1 correlation of residuals; 0.1 to 1."""
    if residuals.size < 4:
        return 1.0
    centred = residuals - residuals.mean()
    power = float((centred**2).sum())
    if not power:
        return 1.0
    lag = float((centred[1:] * centred[:-1]).sum()) / power + 1 / residuals.size  # it is biased downward
    return min(1.0, max(0.1, (1 - lag) / (1 + lag)))


def spread(values: Float64) -> float:
    """Sum of the distances from the median."""
    return float(np.abs(values - np.median(values)).sum())


def step_p(batches: Float64, at: int, floor: float, places: int) -> float:
    """Chance of a step as large as that at ``at`` without one, the best of so many ``places``.

    ``floor`` is noise that is always there.
    """
    first, second = batches[:at], batches[at:]
    freedom = batches.size - 2
    residuals = np.concatenate([first - first.mean(), second - second.mean()])
    variance = float((residuals**2).sum()) / freedom + floor**2
    if not variance:
        return _LEAST_P if first.mean() != second.mean() else 1.0
    error = math.sqrt(variance * (1 / first.size + 1 / second.size) / evidence_left(residuals))
    return min(1.0, t_tail((second.mean() - first.mean()) / error, freedom) * places)


def trend_p(values: Float64, at: Float64, slope: float, floor: float) -> float:
    """Chance of a slope as steep without a trend: Student's t of the residuals around it."""
    residuals = values - slope * at
    residuals -= residuals.mean()
    freedom = values.size - 2
    variance = float((residuals**2).sum()) / freedom + floor**2
    width = float(((at - at.mean()) ** 2).sum()) * evidence_left(residuals)
    return t_tail(slope / math.sqrt(variance / width), freedom) if variance and width else _LEAST_P


def mann_kendall(values: Float64) -> tuple[float, float]:
    """Return Kendall's tau with time, and the chance of one as far from 0; ties are counted."""
    n = values.size
    score = float(np.triu(np.sign(values[None, :] - values[:, None]), 1).sum())
    _, ties = np.unique(values, return_counts=True)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    if variance <= 0:
        return 0.0, 1.0
    return 2 * score / (n * (n - 1)), normal_tail(max(abs(score) - 1, 0) / math.sqrt(variance))


def theil_sen(values: Float64, at: Float64) -> float:
    """Median of the slopes between all pairs of values."""
    first, second = np.triu_indices(values.size, 1)
    return float(np.median((values[second] - values[first]) / (at[second] - at[first])))


def superiority(before: Float64, after: Float64) -> float:
    """Chance that a value after exceeds one before, ties halved (Vargha and Delaney's A, 2000)."""
    ordered = np.sort(before)
    below = np.searchsorted(ordered, after, "left")
    level = np.searchsorted(ordered, after, "right")
    return float((below + level).sum()) / (2 * before.size * after.size)
