"""Against published tables, and sums made by hand."""

import numpy as np
import pytest

from tracehunch.compare.over_time import statistics


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (2.776, 4, 0.05), (2.228, 10, 0.05), (3.883, 19, 0.001)],
)
def test_tail_of_students_t_as_in_tables(t, freedom, p):
    assert statistics.t_tail(t, freedom) == pytest.approx(p, rel=2e-3)


def test_theil_sen_is_the_median_of_all_slopes_and_ignores_one_wild_value():
    values = np.array([0.0, 2.0, 4.0, 100.0, 8.0])
    slopes = [(values[j] - values[i]) / (j - i) for i in range(5) for j in range(i + 1, 5)]
    assert statistics.theil_sen(values, np.arange(5.0)) == float(np.median(slopes)) == 2.0


def test_mann_kendall_counts_pairs():
    tau, p = statistics.mann_kendall(np.array([1.0, 3.0, 2.0, 4.0, 5.0, 6.0, 7.0, 8.0]))
    assert tau == pytest.approx((27 - 1) / 28)
    assert p == pytest.approx(0.002, abs=0.001)  # Kendall 1975: 26 of 28, n 8: 0.0002 to 0.003 two-sided
    assert statistics.mann_kendall(np.ones(8)) == (0.0, 1.0)


def test_neighbours_that_are_alike_are_less_evidence():
    waves = np.sin(np.arange(40) / 6)
    noise = np.random.default_rng(0).normal(size=40)
    assert statistics.evidence_left(waves) < 0.2
    assert statistics.evidence_left(noise) > 0.6


def test_superiority_halves_ties():
    assert statistics.superiority(np.array([1.0, 2.0]), np.array([2.0, 3.0])) == (2 + 1.5) / 4
