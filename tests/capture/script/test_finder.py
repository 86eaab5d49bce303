from tracehunch.capture.script.finder import Finder, Move

MODEL, ADAM, SGD = range(3)


def tell(finder, events):
    """Pass events as "f" and "o" (a forward, an optimizer step); return the moves that do something."""
    moves = [finder.forward(MODEL) if one == "f" else finder.optimizer(ADAM) for one in events]
    return [(index, move) for index, move in enumerate(moves) if move is not Move.NOTHING]


def test_optimizer_steps_are_the_steps_of_training():
    finder = Finder(skip=2)
    assert tell(finder, "fofofofo") == [(3, Move.START), (5, Move.STEP), (7, Move.STEP)]
    assert finder.kind == "optimizer"


def test_forwards_are_the_steps_where_no_optimizer_steps():
    finder = Finder(skip=2)
    assert tell(finder, "ffff") == [(1, Move.START), (2, Move.STEP), (3, Move.STEP)]
    assert finder.kind == "forward"


def test_an_optimizer_that_comes_later_goes_first():
    finder = Finder(skip=2)
    tell(finder, "ffffffff")
    assert tell(finder, "oo") == [(1, Move.START)]
    assert finder.kind == "optimizer"


def test_forwards_between_optimizer_steps_are_no_steps():
    finder = Finder(skip=3)
    assert tell(finder, "o" + "f" * 50 + "o") == []
    assert tell(finder, "f" * 102)[0][1] is Move.START  # training is over


def test_a_newcomer_amid_the_recording_begins_it_again():
    finder = Finder(skip=1)
    tell(finder, "oo")
    assert finder.optimizer(SGD) is Move.AGAIN
    assert finder.kind == "whole"
    assert finder.optimizer(ADAM) is Move.NOTHING


def test_only_what_is_wanted_counts():
    finder = Finder(skip=1, only="forward")
    assert tell(finder, "ofof") == [(1, Move.START), (3, Move.STEP)]
    assert tell(Finder(skip=1, only="whole"), "ofofof") == []


def test_the_first_step_always_passes():
    assert tell(Finder(skip=0), "oo") == [(0, Move.START), (1, Move.STEP)]
