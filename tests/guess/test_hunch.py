"""hunch.toml: reading, mistakes, and that what is written is read back the same."""

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehunch.errors import GuessError
from tracehunch.facts.vocabulary import KEYS
from tracehunch.guess import Claim, Guess
from tracehunch.guess.hunch import parse_hunch, read_hunch
from tracehunch.guess.relation import LEADS_KEYS, MERGED_KEYS
from tracehunch.guess.words import CHOICES, CLOSED
from tracehunch.guess.write import write_hunch

DESIGNED = """
[[guess]]
scope = "attn_fwd"            # annotation, op, module path, step or "*"
kernels = 5                   # exact, or "<= 5", "4..6", "~5"
any_copies = 0
sdpa.backend = "flash"
dominant = ["aten::softmax"]  # the ops that lead, in order
gpu_time = "< 200us"
bound = "memory"
why = "five ops, five kernels"
"""


def test_the_documented_example_is_understood():
    claims = parse_hunch(DESIGNED).guess.claims
    assert {claim.key: (claim.relation, claim.expected, claim.unit) for claim in claims} == {
        "kernels": ("==", 5, "count"),
        "any_copies": ("==", 0, "count"),
        "sdpa.backend": ("==", "flash", "text"),
        "dominant": ("leads", ("aten::softmax",), "text"),
        "gpu_time": ("<", 200, "us"),
        "bound": ("==", "memory", "text"),
    }
    assert {(claim.scope, claim.who, claim.why) for claim in claims} == {
        ("attn_fwd", "user", "five ops, five kernels")
    }


MISTAKES = [
    ("[[guess]\n", "h.toml is not TOML", "line 1"),
    ('[[guess]]\nscope = "s"\nkernels = \n', "h.toml is not TOML", "line 3"),
    ('[[guess]]\nscope = "s"\nkernels = 5\nkernels = 6\n', "h.toml is not TOML", "line 4"),
    (
        '[[guess]]\nscope = "s"\ncopies = 1\ncopies.dtod = 1\n',
        "h.toml is not TOML",
        'beside copies write "copies.dtod" = 1, with the key in quotes',
    ),
    ("", "no guess in it", "write a [[guess]] table"),
    ("[guess]\nkernels = 5\n", "not a list of tables", "two brackets"),
    ("[[gess]]\nkernels = 5\n", "unknown table [gess]", "[[guess]]"),
    ("kernels = 5\n", "unknown table [kernels]", "[[guess]]"),
    ("[[guess]]\nkernels = 5\n", "guess 1 (line 1): no scope", 'add scope = "NAME"'),
    ("[[guess]]\nscope = 5\n", "scope = 5 is not text", 'scope = "NAME"'),
    ('[[guess]]\nscope = "s"\n', "claims nothing", "kernels = 5"),
    (
        '\n[[guess]]\nscope = "s"\nkernel = 5\n',
        "h.toml: guess 1 (line 2): unknown key 'kernel'",
        "did you mean kernels?",
    ),
    (
        '[[guess]]\nscope = "s"\nkernels = 5\n[[guess]]\nscope = "s"\nkernels = ">= 4"\n',
        "claimed twice",
        '"4..6"',
    ),
    ('[[guess]]\nscope = "s"\nkernels = 2020-01-01\n', "kernels: ", "write 5"),
    ('[hunch]\nsael = "x"\n', "unknown key 'sael' in [hunch]", "seal"),
    ('[hunch]\nwho = "me"\n', "who = 'me' is not known", "baseline"),
    ("[hunch]\nseal = 5\n", "seal is not text", "remove it"),
    ("[hunch.context]\ntorch = 2\n", "context torch is not text", 'write torch = "2"'),
    ("hunch = 3\n", "hunch is not a table", "[hunch]"),
]


@pytest.mark.parametrize(("text", "what", "hint"), MISTAKES)
def test_mistakes_are_one_line_that_names_the_place_and_the_remedy(text, what, hint):
    with pytest.raises(GuessError) as error:
        parse_hunch(text, "h.toml")
    assert what in str(error.value)
    assert hint in str(error.value)
    assert "\n" not in str(error.value)


def test_a_deeply_nested_file_is_refused_not_crashed():
    with pytest.raises(GuessError, match="not TOML"):
        parse_hunch("a = " + "[" * 100_000)


def test_files_that_cannot_be_read(tmp_path):
    for path, reason in ((tmp_path / "none.toml", "No such file"), (tmp_path, "folder")):
        with pytest.raises(GuessError, match=reason):
            read_hunch(path)
    trace = tmp_path / "trace.json.gz"
    trace.write_bytes(b"\x1f\x8b\x08\x00")
    with pytest.raises(GuessError, match="not UTF-8"):
        read_hunch(trace)


def test_a_byte_order_mark_is_no_obstacle(tmp_path):
    path = tmp_path / "hunch.toml"
    path.write_bytes(b"\xef\xbb\xbf" + DESIGNED.encode())
    assert read_hunch(path).guess == parse_hunch(DESIGNED).guess


GUESS = Guess(
    (
        Claim("kernels", "==", 5, "attn_fwd", "baseline", unit="count"),
        Claim("copies", "==", 1, "attn_fwd", "baseline", unit="count"),
        Claim("copies.dtod", "==", 1, "attn_fwd", "baseline", unit="count"),
        Claim("sdpa.backend", "==", ("flash", "math"), "attn_fwd", "baseline", unit="text"),
        Claim("gpu_time", "in", (1062.7, 1066.5), "attn_fwd", "baseline", "it varies", "medium", "us"),
        Claim("kernels", "<=", 6, "attn_fwd", "user", unit="count"),
    ),
    {"device": "NVIDIA H200", "torch": "2.11.0+cu130"},
)


def test_a_written_guess_is_read_back_with_its_seal():
    text = write_hunch(GUESS, ["from naive.json.gz", "evil\x1b[31m"], datetime(2026, 8, 1, tzinfo=UTC))
    hunch = parse_hunch(text)
    assert hunch.guess == GUESS
    assert hunch.sealed == GUESS.seal
    assert not hunch.edited
    assert '"copies.dtod" = 1' in text
    assert "made = 2026-08-01T00:00:00Z" in text
    assert "\x1b" not in text


def test_an_edit_breaks_the_seal_and_a_comment_does_not():
    text = write_hunch(GUESS)
    assert parse_hunch(text.replace("kernels = 5", "kernels = 6")).edited
    assert parse_hunch(text.replace("H200", "H100")).edited
    assert not parse_hunch("# mine\n" + text).edited
    assert not parse_hunch(DESIGNED).edited


def test_what_cannot_be_written_is_refused():
    with pytest.raises(GuessError, match="without claims"):
        write_hunch(Guess(()))
    with pytest.raises(GuessError, match="surrogate"):
        write_hunch(Guess((Claim("kernels", "==", 5, "\ud800", "user", unit="count"),)))
    with pytest.raises(GuessError, match="twice"):
        write_hunch(Guess((GUESS.claims[0], GUESS.claims[0])))


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: bool(text.strip())
)


@st.composite
def guesses(draw):
    claims = {}
    for _ in range(draw(st.integers(1, 6))):
        key, scope, who = (
            draw(st.sampled_from(sorted(KEYS))),
            draw(ANY_TEXT),
            draw(st.sampled_from(["user", "expert"])),
        )
        unit = KEYS[key].unit
        if key in LEADS_KEYS:
            relation, expected = "leads", tuple(draw(st.lists(ANY_TEXT, min_size=1, max_size=3)))
        elif key in MERGED_KEYS:
            names = st.lists(ANY_TEXT, min_size=1, max_size=3, unique=True)
            relation, expected = "merged", tuple(draw(names))
        elif unit == "text":
            words = st.sampled_from(CHOICES[key]) if key in CLOSED else ANY_TEXT
            relation, expected = "==", draw(words)
        else:
            relation = draw(st.sampled_from(["<=", "<", ">=", ">", "~", "in"]))
            numbers = sorted(draw(st.tuples(*[st.integers(0, 10**9) | st.floats(0, 1e9)] * 2)))
            expected = tuple(numbers) if relation == "in" else numbers[0]
        why, confidence = (
            draw(st.text(st.characters(exclude_categories=["Cs"]))),
            draw(st.sampled_from(["high", "low"])),
        )
        claims[key, scope, who] = Claim(key, relation, expected, scope, who, why, confidence, unit)
    context = draw(st.dictionaries(ANY_TEXT, st.text(st.characters(exclude_categories=["Cs"])), max_size=3))
    return Guess(tuple(claims.values()), context)


@settings(deadline=None)
@given(guesses())
def test_any_guess_survives_the_file(guess):
    hunch = parse_hunch(write_hunch(guess))
    assert hunch.guess == guess
    assert hunch.guess.seal == hunch.sealed == guess.seal
