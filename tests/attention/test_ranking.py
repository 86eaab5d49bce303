"""Which variant is fastest is said only where the forwards can tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracehunch.attention import VARIANTS
from tracehunch.attention import ranking as module
from tracehunch.attention.guesses import guess_of
from tracehunch.attention.outcome import Device, Outcome, Series
from tracehunch.attention.ranking import forward_times_us, rank
from tracehunch.attention.recorded import recording
from tracehunch.attention.workload import Workload
from tracehunch.judge import examine
from tracehunch.report import attention_headline
from tracehunch.trace import read

CPU = Path(__file__).parents[1] / "data" / "cpu"
WORKLOAD = Workload(batch=1, heads=8, seq=512, head_dim=64, kv_heads=8)
HERE = Device("cpu", "CPU")
BY_NAME = {variant.name: variant for variant in VARIANTS}


def cpu(name):
    guess = guess_of(BY_NAME[name], WORKLOAD, HERE)
    return Outcome(BY_NAME[name], "ran", HERE, WORKLOAD, guess, examine(read(CPU / f"{name}.json.gz")))


def recorded(name):
    device, workload = recording().device, recording().workload
    look = examine(read(recording().traces[name]))
    return Outcome(
        BY_NAME[name], "recorded", device, workload, guess_of(BY_NAME[name], workload, device), look
    )


class Made(Outcome):
    """An outcome whose forwards took what a test says."""

    time_us = 0.0


@pytest.fixture
def made(monkeypatch):
    times: dict[str, list[float]] = {}

    def make(name, *forwards_us):
        one = type("One", (Made,), {"time_us": sorted(forwards_us)[(len(forwards_us) - 1) // 2]})
        times[name] = list(forwards_us)
        return one(BY_NAME[name], "ran", HERE, WORKLOAD, guess_of(BY_NAME[name], WORKLOAD, HERE))

    monkeypatch.setattr(module, "forward_times_us", lambda outcome: times[outcome.variant.name])
    return make


@pytest.mark.parametrize(
    ("where", "name"), [("cpu", "naive"), ("cpu", "sdpa_flash"), ("h200", "naive"), ("h200", "sdpa_math")]
)
def test_times_of_forwards_are_those_the_facts_summarise(where, name):
    outcome = cpu(name) if where == "cpu" else recorded(name)
    times = forward_times_us(outcome)
    fact = outcome.scope.facts["gpu_time" if outcome.device.kind == "cuda" else "cpu_time"]
    assert sorted(times)[1] == pytest.approx(fact.value, rel=1e-6)
    assert (min(times), max(times)) == pytest.approx((fact.low, fact.high), rel=1e-6)


def names(outcomes):
    return [one.variant.name for one in outcomes]


def test_ranges_apart_are_a_rank(made):
    ranking = rank([made("naive", 50, 60, 90), made("sdpa_flash", 10, 11, 30)])
    assert names(ranking.order) == ["sdpa_flash", "naive"]
    assert names(ranking.leading) == ["sdpa_flash"]
    assert not ranking.noisy


def test_overlapping_ranges_are_no_rank(made):
    ranking = rank([made("naive", 2, 39, 70), made("sdpa_flash", 5, 20, 40), made("sdpa_math", 90, 95, 99)])
    assert names(ranking.undecided) == ["sdpa_flash", "naive"]
    assert ranking.widest == 35


def test_of_many_forwards_one_that_was_held_up_does_not_count(made):
    steady = [10.0] * 9 + [500.0]
    ranking = rank([made("sdpa_flash", *steady), made("naive", *[20.0] * 10)])
    assert names(ranking.leading) == ["sdpa_flash"]
    assert not ranking.noisy


def test_two_that_run_the_same_kernel_are_alike_and_not_noisy():
    ranking = rank([recorded("sdpa_auto"), recorded("sdpa_cudnn"), recorded("sdpa_flash")])
    assert names(ranking.leading) == ["sdpa_cudnn", "sdpa_auto"]
    assert not ranking.noisy


def test_headlines_say_what_can_be_told(made):
    def fastest(*outcomes):
        return attention_headline._fastest(rank(outcomes))

    one = made("naive", 1000, 1100, 1200)
    assert fastest(one) == "naive takes 1.100 ms a forward"
    assert fastest(one, made("sdpa_flash", 100, 110, 120)) == (
        "sdpa_flash is fastest, 110.0 us a forward; naive takes 10.0x as long"
    )
    assert fastest(one, made("sdpa_flash", 1000, 1110, 1120)) == (
        "naive and sdpa_flash take about as long, 1.100 ms a forward"
    )
    noisy = fastest(made("naive", 2000, 39000, 36000), made("sdpa_flash", 5000, 20000, 40000))
    assert noisy == ("Too noisy to rank sdpa_flash and naive on this machine: forwards differ by up to 19.5x")
    slow = made("sdpa_math", 100_000, 100_000, 100_000)
    noisy = fastest(made("naive", 2000, 39000, 36000), made("sdpa_flash", 5000, 20000, 40000), slow)
    assert noisy.endswith("19.5x; sdpa_math takes 5.00x the 20.00 ms of sdpa_flash")


def test_one_broken_guess_is_told_in_the_singular():
    naive = recorded("naive")
    look = examine(read(recording().traces["naive"]), (naive.guess,))
    series = Series((Outcome(naive.variant, "recorded", naive.device, naive.workload, naive.guess, look),))
    assert attention_headline.headline(series).endswith("1 guess did not hold, and is explained.")
