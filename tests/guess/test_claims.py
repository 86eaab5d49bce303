"""Claims from mappings and typed lines."""

import pytest

from tracehunch.errors import GuessError
from tracehunch.guess import Claim
from tracehunch.guess.claims import claims_from_line, claims_from_mapping


def said(claims):
    return {claim.key: (claim.relation, claim.expected) for claim in claims}


def test_a_mapping_becomes_claims_in_order():
    claims = claims_from_mapping(
        "attn_fwd", {"kernels": 5, "any_copies": 0, "gpu_time": "< 200us", "why": "five ops"}
    )
    assert claims == (
        Claim("kernels", "==", 5, "attn_fwd", "user", "five ops", unit="count"),
        Claim("any_copies", "==", 0, "attn_fwd", "user", "five ops", unit="count"),
        Claim("gpu_time", "<", 200, "attn_fwd", "user", "five ops", unit="us"),
    )


@pytest.mark.parametrize(
    "written", [{"sdpa": {"backend": "flash"}}, {"sdpa.backend": "flash"}, {"sdpa_backend": "flash"}]
)
def test_dotted_keys_may_nest_be_quoted_or_use_an_underscore(written):
    assert said(claims_from_mapping("s", written)) == {"sdpa.backend": ("==", "flash")}


def test_a_time_key_spelled_as_in_the_json_is_in_microseconds():
    assert said(claims_from_mapping("s", {"gpu_time_us": 200})) == {"gpu_time": ("~", 200)}
    assert said(claims_from_mapping("s", {"gpu_time_us": "<= 1.5"})) == {"gpu_time": ("<=", 1.5)}


def test_who_why_and_confidence_hold_for_all():
    claims = claims_from_mapping(
        "s", {"kernels": 1, "copies": 0, "who": "expert", "confidence": "low", "why": "w"}
    )
    assert {(claim.who, claim.confidence, claim.why) for claim in claims} == {("expert", "low", "w")}


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ({"kernel": 5}, "did you mean kernels?"),
        ({"Kernels": 5}, "did you mean kernels?"),
        ({"sdpa": {"backnd": "flash"}}, "did you mean sdpa.backend?"),
        ({"wy": "because"}, "did you mean why?"),
        ({"zzzzzz": 1}, "keys are "),
        ({"kernels": "five"}, "kernels: 'five' is not a number"),
        ({"gpu_time": 200}, "gpu_time: 200 has no unit"),
        ({"gpu_time": "1ms", "gpu_time_us": 1000}, "gpu_time is claimed twice"),
        ({"sdpa.backend": "flash", "sdpa": {"backend": "math"}}, "sdpa.backend is claimed twice"),
        ({"kernels": 5, "why": 3}, "why = 3 is not text"),
        ({"kernels": 5, "confidence": "sure"}, "use high, medium, low"),
        ({"kernels": 5, "who": "me"}, "use textbook, expert, user, baseline"),
        ({"dominant": [1]}, "write the op names in order"),
    ],
)
def test_mistakes_name_the_key_and_what_to_write(written, hint):
    with pytest.raises(GuessError) as error:
        claims_from_mapping("s", written)
    assert hint in str(error.value)


def test_an_empty_scope_is_refused():
    with pytest.raises(GuessError, match="scope is empty"):
        claims_from_mapping("  ", {"kernels": 5})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kernels 5", {"kernels": ("==", 5)}),
        (
            "kernels: 5, copies = 0; backend flash",
            {"kernels": ("==", 5), "copies": ("==", 0), "sdpa.backend": ("==", "flash")},
        ),
        ("kernels <= 6", {"kernels": ("<=", 6)}),
        ("kernels<=6", {"kernels": ("<=", 6)}),
        ("kernels == 6", {"kernels": ("==", 6)}),
        ("kernels 4..6,gpu_time < 1.2 ms", {"kernels": ("in", (4, 6)), "gpu_time": ("<", 1200.0)}),
        (
            "dominant aten::softmax, aten::bmm, kernels 5",
            {"dominant": ("leads", ("aten::softmax", "aten::bmm")), "kernels": ("==", 5)},
        ),
        ("  ", {}),
    ],
)
def test_a_typed_line_becomes_claims(line, expected):
    assert said(claims_from_line("s", line)) == expected


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("kernels", "says no value"),
        ("5", "says no value"),
        ("kernels 5, kernels 6", "twice"),
        ("krnels 5", "did you mean kernels?"),
    ],
)
def test_a_typed_mistake_is_one_line(line, hint):
    with pytest.raises(GuessError) as error:
        claims_from_line("s", line)
    assert hint in str(error.value)
