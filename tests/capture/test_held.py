"""Signals wait for a piece of work, and nothing is left of that."""

import signal
import threading

import pytest

from tracehunch.capture.held import held


@pytest.fixture
def heard():
    """Which signals were handled, by a handler that is there for the test."""
    came = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    yield came
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_until_the_work_is_done_and_is_then_handled_once(heard):
    before = signal.getsignal(signal.SIGINT)
    with held():
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before


def test_within_another_it_waits_for_both(heard):
    with held():
        with held():
            signal.raise_signal(signal.SIGINT)
        assert heard == []
    assert heard == [signal.SIGINT]


def test_work_that_fails_is_over_too(heard):
    def work():
        signal.raise_signal(signal.SIGINT)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), held():
        work()
    assert heard == [signal.SIGINT]


def test_a_handler_that_the_work_sets_stays(heard):
    def other(*_):
        heard.append("other")

    with held():
        signal.raise_signal(signal.SIGINT)
        signal.signal(signal.SIGINT, other)
    assert signal.getsignal(signal.SIGINT) is other
    assert heard == ["other"]


def test_what_nobody_handles_is_left_alone():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with held():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("heard")
def test_in_another_thread_nothing_is_done():
    found = []

    def work():
        with held():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGINT)]
