import pytest

from tracehunch.predict.activities import Activities, KernelGuess, TimeRange, cannot_tell, total

ONE = Activities(
    kernels=(KernelGuess("a", "pytorch", "elementwise"),),
    memsets=1,
    flops=3,
    bytes=8,
    time=TimeRange(1, 2, 4),
)
TWO = Activities(
    kernels=(KernelGuess("b", "cublas", "gemm"),) * 2,
    copies=("dtod",),
    time=TimeRange(2, 3, 5),
    confidence="low",
    reasons=("measured",),
)


def test_the_one_after_the_other_adds_up_and_keeps_the_order():
    both = ONE + TWO
    assert [kernel.hint for kernel in both.kernels or ()] == ["a", "b", "b"]
    assert (both.kernel_count, both.copy_count, both.memsets) == (3, 1, 1)
    assert (both.flops, both.bytes) == (3, 8)
    assert both.time == TimeRange(3, 5, 9)
    assert both.confidence == "low"
    assert both.reasons == ("measured",)


def test_what_cannot_be_told_stays_unknown_in_a_sum():
    both = total([ONE, cannot_tell("no such op"), TWO])
    assert (both.kernel_count, both.copy_count, both.memsets) == (None, None, None)
    assert both.time is None
    assert "no such op" in both.reasons


def test_nothing_takes_no_time():
    assert total([]).empty
    assert (Activities() + ONE).time == ONE.time
    assert (ONE + Activities()).time == ONE.time


def test_nothing_runs_after_an_error():
    failed = ONE + Activities(raises="shapes do not match")
    assert failed + TWO == failed
    assert failed.kernel_count == 1


def test_reasons_are_listed_once_and_confidence_only_falls():
    found = ONE.because("x", "x", confidence="medium").because("y", confidence="high")
    assert found.reasons == ("x", "y")
    assert found.confidence == "medium"


def test_the_width_of_a_range():
    assert TimeRange(2.0, 3.0, 5.0).width == pytest.approx(2.5)
