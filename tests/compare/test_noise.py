"""What counts as different."""

import pytest

from tracehunch.compare.model import Spread
from tracehunch.compare.noise import differ, outcome_of
from tracehunch.facts.model import Fact


def time(value, low=None, high=None):
    return Fact("gpu_time", value, "us", value if low is None else low, value if high is None else high)


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (time(100, 99, 101), time(100, 99, 101), "same"),
        (time(100, 80, 120), time(115, 110, 130), "noise"),  # spreads overlap
        (time(100, 99, 101), time(103, 102.5, 104), "noise"),  # apart by less than two runs are
        (time(100, 99, 101), time(110, 108, 112), "more"),
        (time(110, 108, 112), time(100, 99, 101), "less"),
        (None, time(1), "unknown"),
    ],
)
def test_times(before, after, outcome):
    assert outcome_of(before, after, (3, 3)) == outcome


def test_one_call_needs_more_to_count():
    before, after = time(100, 99, 101), time(105, 105, 105)
    assert outcome_of(before, after, (3, 3)) == "more"
    assert outcome_of(before, after, (3, 1)) == "noise"


def test_host_times_vary_more():
    spreads = Spread(100, 99, 101, 3), Spread(108, 107, 109, 3)
    assert differ(*spreads, on_gpu=True)
    assert not differ(*spreads, on_gpu=False)


def test_short_work_needs_more_than_the_steps_of_a_clock():
    spreads = Spread(1.0, 1.0, 1.0, 3), Spread(1.2, 1.2, 1.2, 3)
    assert not differ(*spreads, on_gpu=True)
    assert differ(Spread(10, 10, 10, 3), Spread(12, 12, 12, 3), on_gpu=True, n=2)


def test_counts_are_exact_unless_calls_differ():
    def count(value, low, high):
        return Fact("kernels", value, "count", low, high)

    assert outcome_of(count(5, 5, 5), count(6, 6, 6), (3, 3)) == "more"
    assert outcome_of(count(5, 4, 6), count(6, 5, 7), (3, 3)) == "noise"


def test_texts_differ_or_not_whatever_their_order():
    def text(value):
        return Fact("sdpa.backend", value, "text")

    assert outcome_of(text("flash"), text("cudnn"), (1, 1)) == "other"
    assert outcome_of(text(("flash", "math")), text(("math", "flash")), (1, 1)) == "same"
