"""An interrupt that somebody swallows still counts."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from tracehunch.cli.interrupts import noted


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_turned_into_another_error_is_obeyed_afterwards() -> None:
    with noted() as interrupts:
        with suppress(KeyboardInterrupt):  # as native code does that ends in an error of its own
            press()
        assert interrupts.came
        with pytest.raises(KeyboardInterrupt):
            interrupts.obey()


def test_without_an_interrupt_nothing_is_raised_and_the_handler_is_put_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with noted() as interrupts:
        interrupts.obey()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_ignored_interrupt_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with noted() as interrupts:
            press()
        assert not interrupts.came
    finally:
        signal.signal(signal.SIGINT, before)
