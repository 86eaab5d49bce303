"""Which file is next, and that all that run together stay within what is allowed."""

import threading

from tracehunch.engines.queueing import Queueing


def test_the_longest_come_first_and_none_when_all_are_taken():
    queueing = Queueing({0: 1, 1: 3, 2: 3}, None, 2)
    assert len(queueing) == 3
    assert [queueing.take()[0] for _ in range(3)] == [1, 2, 0]
    assert queueing.take() is None


def test_a_file_that_does_not_fit_waits_and_a_smaller_one_goes_before_it():
    queueing = Queueing({0: 60, 1: 50, 2: 40}, 100, 4)
    assert queueing.take() == (0, 60)
    assert queueing.take() == (2, 40)
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(queueing.take()))
    waiting.start()
    waiting.join(0.05)
    assert taken == []
    queueing.give_back(0)
    waiting.join(60)
    assert taken == [(1, 50)]


def test_every_file_gets_an_equal_share_at_least():
    queueing = Queueing({0: 1, 1: 80}, 100, 2)
    assert queueing.take() == (1, 80)
    queueing.give_back(1)
    assert queueing.take() == (0, 50)


def test_one_that_needs_more_than_all_runs_alone():
    assert Queueing({0: 500}, 100, 2).take() == (0, 500)


def test_closed_it_gives_nothing_and_wakes_who_waits():
    queueing = Queueing({0: 60, 1: 60}, 100, 2)
    queueing.take()
    taken = []
    waiting = threading.Thread(target=lambda: taken.append(queueing.take()))
    waiting.start()
    queueing.close()
    waiting.join(60)
    assert taken == [None]
