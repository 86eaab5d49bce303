"""The grammar of one expectation, alone and in round trips."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehunch.errors import GuessError
from tracehunch.guess import Claim
from tracehunch.guess.relation import format_value, parse_value

WRITTEN = [
    ("count", 5, "==", 5),
    ("count", 5.0, "==", 5),
    ("count", "5", "==", 5),
    ("count", " == 5 ", "==", 5),
    ("count", "=5", "==", 5),
    ("count", "<= 5", "<=", 5),
    ("count", "<5", "<", 5),
    ("count", "≥ 5", ">=", 5),
    ("count", "> 5", ">", 5),
    ("count", "4..6", "in", (4, 6)),
    ("count", "4 .. 6", "in", (4, 6)),
    ("count", "5..5", "in", (5, 5)),
    ("count", "~5", "~", 5),
    ("count", "~ 5.5", "~", 5.5),
    ("us", "200us", "~", 200),
    ("us", "== 200us", "==", 200),
    ("us", "< 200us", "<", 200),
    ("us", "< 1.2ms", "<", 1200.0),
    ("us", "<= 2 s", "<=", 2_000_000),
    ("us", "> 500ns", ">", 0.5),
    ("us", "3 µs", "~", 3),
    ("us", "100..200us", "in", (100, 200)),
    ("us", "0.1ms..200us", "in", (100.0, 200)),
    ("bytes", 1024, "==", 1024),
    ("bytes", "< 1.5GiB", "<", 1.5 * 2**30),
    ("bytes", "16KB", "==", 16_000),
    ("bytes", "1.5KiB", "==", 1536),
    ("ratio", "< 50%", "<", 0.5),
    ("ratio", 0.25, "~", 0.25),
    ("percent", "62.5%", "~", 62.5),
    ("text", "flash", "==", "flash"),
    ("text", ["flash", "math"], "==", ("flash", "math")),
    ("text", ["flash"], "==", "flash"),
]


@pytest.mark.parametrize(("unit", "value", "relation", "expected"), WRITTEN)
def test_written_values_mean(unit, value, relation, expected):
    found = parse_value("some_key", value, unit)
    assert found == (relation, expected)
    assert type(found[1]) is type(expected)


@pytest.mark.parametrize("value", ["aten::softmax", ["aten::softmax"]])
def test_dominant_is_about_what_leads(value):
    assert parse_value("dominant", value, "text") == ("leads", ("aten::softmax",))


REFUSED = [
    ("count", "four", "not a number"),
    ("count", "", "not a number"),
    ("count", "<=", "not a number"),
    ("count", "!= 5", "no relation"),
    ("count", "5 us", "does not fit"),
    ("count", 5.5, "not whole"),
    ("count", "== 5.5", "not whole"),
    ("count", -1, "out of range"),
    ("count", "-1", "not a number"),
    ("count", float("nan"), "out of range"),
    ("count", float("inf"), "out of range"),
    ("count", "nan", "not a number"),
    ("count", True, "true or false"),
    ("count", None, "NoneType"),
    ("count", {"a": 1}, "a table"),
    ("count", "6..4", "empty"),
    ("count", "4..", "open"),
    ("count", "..4", "open"),
    ("count", "4-6", 'write a range as "4..6"'),
    ("count", "4..6..8", "not a number"),
    ("count", [4, 6], "a list"),
    ("us", "200", "needs one"),
    ("us", 200, "needs one"),
    ("us", "100..200", "needs one"),
    ("us", "200 KB", "does not fit"),
    ("bytes", "1.5 ms", "does not fit"),
    ("text", 5, "not text"),
    ("text", "  ", "not text"),
    ("text", [], "not text"),
    ("text", ["a", 1], "not text"),
]


@pytest.mark.parametrize(("unit", "value", "why"), REFUSED)
def test_what_cannot_be_understood_is_one_clear_line(unit, value, why):
    with pytest.raises(GuessError) as error:
        parse_value("some_key", value, unit)
    assert why in str(error.value)
    assert "\n" not in str(error.value)


NUMBERS = st.integers(0, 10**15) | st.floats(0, 1e15, allow_nan=False)
UNITS = st.sampled_from(["count", "us", "bytes", "ratio", "percent", "bytes/s", "flop/s"])
TEXTS = st.text(min_size=1).filter(lambda text: bool(text.strip()))


@st.composite
def number_claims(draw):
    unit = draw(UNITS)
    relation = draw(st.sampled_from(["==", "<=", "<", ">=", ">", "in", "~"]))
    if relation == "in":
        expected = tuple(sorted((draw(NUMBERS), draw(NUMBERS))))
    elif relation == "==" and unit in ("count", "bytes"):
        expected = draw(st.integers(0, 10**15))
    else:
        expected = draw(NUMBERS)
    return Claim("some_key", relation, expected, "s", "user", unit=unit)


@st.composite
def text_claims(draw):
    key = draw(st.sampled_from(["some_key", "dominant"]))
    texts = tuple(draw(st.lists(TEXTS, min_size=1, max_size=4)))
    if key == "dominant":
        return Claim(key, "leads", texts, "s", "user", unit="text")
    return Claim(key, "==", texts if len(texts) > 1 else texts[0], "s", "user", unit="text")


@settings(deadline=None)
@given(number_claims() | text_claims())
def test_parse_of_format_is_the_claim(claim):
    relation, expected = parse_value(claim.key, format_value(claim), claim.unit)
    assert (relation, expected) == (claim.relation, claim.expected)
    assert repr(expected) == repr(claim.expected)


@settings(deadline=None)
@given(st.text(), UNITS | st.just("text"))
def test_any_text_is_parsed_or_refused(text, unit):
    try:
        relation, expected = parse_value("some_key", text, unit)
    except GuessError as error:
        assert str(error)  # noqa: PT017  # both outcomes are fine, a crash is not
    else:
        claim = Claim("some_key", relation, expected, "s", "user", unit=unit)
        assert parse_value("some_key", format_value(claim), unit) == (relation, expected)
