import pytest

from tracehunch.capture.script.rounds import Rounds

CASES = [  # turns, where a round ended
    ("AAAA", "||||"),  # one optimizer
    ("DGDGDG", "|..|.|"),  # a GAN: learned in the first round, told from the second on
    ("DDGDDGDDG", "||...|..|"),  # two steps of the critic for one of the generator
    ("DGGDGGDGG", "|....|..|"),
    ("ABCABCABC", "|....|..|"),  # one optimizer for each parameter
    ("AAAAABBBBBBB", "|||||...||||"),  # one after the other: the first is gone
]


@pytest.mark.parametrize(("turns", "ends"), CASES)
def test_rounds_end_with_the_one_that_closes_them(turns, ends):
    rounds = Rounds()
    assert "".join("|" if rounds.turn(ord(one)) else "." for one in turns) == ends


def test_a_round_found_out_afterwards_counts():
    rounds = Rounds()
    for one in "DGDG":
        rounds.turn(ord(one))
    assert rounds.ended == 3  # D alone, D G, D G
