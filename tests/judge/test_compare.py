"""Relations against values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehunch.guess import Claim
from tracehunch.judge.compare import ABOUT, excess, fits, holds


def claim(relation, expected, unit="count"):
    return Claim("some_key", relation, expected, "s", "user", unit=unit)


@pytest.mark.parametrize(
    ("relation", "expected", "good", "bad"),
    [
        ("==", 5, [5, 5.0], [4, 6, 5.001]),
        ("<=", 5, [5, 0], [6]),
        ("<", 5, [4, 4.999], [5, 6]),
        (">=", 5, [5, 6], [4]),
        (">", 5, [6, 5.001], [5, 4]),
        ("in", (4, 6), [4, 5, 6], [3, 7, 3.999]),
        ("~", 100, [90, 100, 110], [89, 111]),
        ("~", 0, [0], [1]),
    ],
)
def test_numbers(relation, expected, good, bad):
    assert [holds(claim(relation, expected), seen) for seen in good] == [True] * len(good)
    assert [holds(claim(relation, expected), seen) for seen in bad] == [False] * len(bad)


def test_texts_are_compared_as_sets():
    assert holds(claim("==", "flash", "text"), "flash")
    assert holds(claim("==", ("math", "flash"), "text"), ("flash", "math"))
    assert not holds(claim("==", "flash", "text"), ("flash", "math"))
    assert not holds(claim("==", ("math", "flash"), "text"), "flash")


def test_text_and_numbers_cannot_be_compared():
    assert not fits(claim("==", 5), "five")
    assert not fits(claim("==", "five"), 5)
    assert not fits(claim("in", (1, 2)), ("a", "b"))
    assert fits(claim("in", (1, 2)), 5)
    assert fits(claim("==", ("a", "b")), "a")


@pytest.mark.parametrize(
    ("relation", "expected", "seen", "difference"),
    [
        ("==", 5, 7, 2),
        ("==", 5, 4, -1),
        ("in", (4, 6), 9, 3),
        ("in", (4, 6), 1, -3),
        ("in", (4, 6), 5, 0),
        ("<=", 5, 7, 2),
        ("<=", 5, 1, 0),
        (">=", 5, 1, -4),
        ("~", 100, 120, 10),
        ("==", "flash", "math", 0),
    ],
)
def test_excess_has_a_direction(relation, expected, seen, difference):
    assert excess(claim(relation, expected), seen) == pytest.approx(difference)


NUMBERS = st.floats(0, 1e9)


@settings(deadline=None)
@given(st.sampled_from(["==", "<=", "<", ">=", ">", "~"]), NUMBERS, NUMBERS)
def test_what_holds_has_no_excess(relation, expected, seen):
    made = claim(relation, expected)
    if holds(made, seen) and relation != "==":
        assert excess(made, seen) == 0
    if excess(made, seen) != 0 and relation != "==":
        assert not holds(made, seen)


@settings(deadline=None)
@given(NUMBERS, NUMBERS)
def test_a_bound_and_its_contrary_never_agree(expected, seen):
    assert holds(claim("<", expected), seen) != holds(claim(">=", expected), seen)
    assert holds(claim(">", expected), seen) != holds(claim("<=", expected), seen)
    inside = holds(claim("in", (expected * (1 - ABOUT), expected * (1 + ABOUT))), seen)
    assert holds(claim("~", expected), seen) == inside
