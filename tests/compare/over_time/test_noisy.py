"""Planted changes are found where they are; noise alone is not called a change."""

import numpy as np
import pytest

from tracehunch.compare.over_time.noisy import Noise, examine

TRIED = 12
NOISE = Noise(0.01 / 10 / (3 * TRIED), 0.10, 2.0)


def calls(seed, *, cycles=8, per=6, likeness=0.3, between=0.02, within=0.04):
    """Host times: neighbours alike, cycles that differ, and slow calls now and then."""
    rng = np.random.default_rng(seed)
    n = cycles * per
    noise = rng.normal(size=n)
    for at in range(1, n):
        noise[at] = likeness * noise[at - 1] + np.sqrt(1 - likeness**2) * noise[at]
    values = 1000 * np.exp(within * noise + between * np.repeat(rng.normal(size=cycles), per))
    slow = rng.random(n) < 0.02
    values[slow] *= 1 + 2 * rng.random(slow.sum())
    return values, np.repeat(np.arange(cycles), per)


def found(values, cycle, *kinds):
    return [one for one in examine(values, cycle, np.arange(values.size), NOISE) if one.kind in kinds]


def test_false_alarms_are_as_rare_as_reports_say():
    """A report of 12 series is wrong in at most 1 of 100: here 40 reports, of noise worse than most."""
    wrong = sum(bool(found(*calls(seed), "step", "trend", "turns")) for seed in range(40 * TRIED))
    assert wrong <= 2


@pytest.mark.parametrize("at", [14, 24, 33])
def test_step_is_found_where_it_is(at):
    hits = 0
    for seed in range(10):
        values, cycle = calls(seed)
        values[at:] *= 1.6
        hits += any(abs(one.cuts[0] - at) <= 1 and len(one.cuts) == 1 for one in found(values, cycle, "step"))
    assert hits >= 8


def test_a_slow_stretch_in_the_middle_is_two_steps():
    values, cycle = calls(3, within=0.01, between=0.005)
    values[18:30] *= 1.5
    (step,) = found(values, cycle, "step")
    assert step.cuts == (18, 30)


def test_trend_is_no_step():
    values, cycle = calls(4, within=0.02, between=0.01)
    values *= 1 + np.arange(values.size) / values.size
    (trend,) = found(values, cycle, "trend", "step")
    assert trend.kind == "trend"
    assert trend.slope == pytest.approx(1000 / values.size, rel=0.15)


def test_every_fifth_call_is_a_pattern_and_a_step_beside_it_is_told_too():
    values, cycle = calls(5, cycles=1, per=60, within=0.02, between=0)
    values[2::5] *= 2
    values[30:] *= 1.5
    (turns,), (step,) = found(values, cycle, "turns"), found(values, cycle, "step")
    assert (turns.every, turns.odd[0]) == (5, 2)
    assert abs(step.cuts[0] - 30) <= 1


def test_shuffled_change_is_none():
    rng = np.random.default_rng(6)
    values, cycle = calls(6)
    values[24:] *= 1.5
    wrong = sum(bool(found(rng.permutation(values), cycle, "step", "trend")) for _ in range(40))
    assert wrong == 0


def test_slow_calls_are_one_offs_and_no_level():
    values, cycle = calls(7, within=0.01, between=0)
    values[[10, 31]] *= 4
    (odd,) = found(values, cycle, "one-off", "step", "trend")
    assert odd.odd == (10, 31)


def test_few_calls_tell_nothing():
    assert [one.kind for one in examine(np.ones(7), np.zeros(7), np.arange(7), NOISE)] == ["too-few"]


def test_what_two_runs_differ_by_anyway_is_no_change():
    values, cycle = calls(8, within=0.001, between=0)
    values[24:] *= 1.05  # sure, but less than the host's margin
    assert not found(values, cycle, "step")
