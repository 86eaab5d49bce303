from __future__ import annotations

import re
from pathlib import Path

import pytest

from tracehunch.guess import Claim, Guess
from tracehunch.judge import examine
from tracehunch.report import markdown, terminal
from tracehunch.report.verdict_text import expected_text, tally, value_text
from tracehunch.trace import read
from tracehunch.verdict import Look, Verdict

NAIVE = Path(__file__).parents[1] / "data" / "h200" / "seeds" / "naive.json.gz"


def claim(key: str, relation: str, expected: object, unit: str = "count", **more: str) -> Claim:
    return Claim(key, relation, expected, more.pop("scope", "attn_fwd"), "user", unit=unit, **more)  # type: ignore[arg-type]  # keywords of the test


@pytest.fixture(scope="module")
def judged() -> Look:
    claims = (
        claim("kernels", "==", 5),
        claim("any_copies", "==", 0, why="nothing to copy"),
        claim("gpu_time", "<", 200.0, "us"),
        claim("memsets", "==", 0),
        claim("flops", "==", 1),
    )
    return examine(read(NAIVE), [Guess(claims)])


def test_all_three_outcomes_are_said(judged: Look) -> None:
    said = " ".join(terminal.render(judged).split())
    assert tally(judged.verdict) == "1 held, 3 surprises (1 unexplained), 1 cannot tell"
    assert tally(judged.verdict) in said
    assert "any_copies in attn_fwd 127.6 us a call at stake guessed 0 (user: nothing to copy), saw 1" in said
    assert "explained by hidden-copy" in said
    assert "guessed less than 200.0 us (user), saw 1.064 ms explained by unfused-attention" in said
    assert "guessed 0 (user), saw 1 unexplained: no finding tells why" in said
    assert "cannot tell flops in attn_fwd: " in said
    assert "held kernels in attn_fwd 5" in said


def test_the_verdict_stands_before_the_findings(judged: Look) -> None:
    text = terminal.render(judged)
    assert (
        text.index("\nVerdict") < text.index("\nFindings") < text.index("\nScopes") < text.index("\nKernels")
    )


def test_without_a_guess_there_is_no_verdict() -> None:
    assert "Verdict" not in terminal.render(examine(read(NAIVE)))
    assert tally(Verdict()) == "0 held, 0 surprises, 0 cannot tell"


@pytest.mark.parametrize(
    ("relation", "expected", "unit", "text"),
    [
        ("==", 5, "count", "5"),
        ("<=", 5, "count", "at most 5"),
        (">", 1500.0, "us", "more than 1.500 ms"),
        ("in", (4, 6), "count", "4 to 6"),
        ("~", 1265, "count", "about 1,265"),
        ("leads", ("aten::mm", "aten::add"), "text", "led by aten::mm and aten::add"),
        ("<", 0.25, "ratio", "less than 25%"),
    ],
)
def test_what_was_expected_in_words(relation: str, expected: object, unit: str, text: str) -> None:
    assert expected_text(claim("key", relation, expected, unit)) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1 << 20, "bytes", "1 MiB"),
        (3e9, "bytes/s", "3.00 GB/s"),
        (62.5, "percent", "62%"),
        ("flash", "text", "flash"),
    ],
)
def test_values_in_their_unit(value: object, unit: str, text: str) -> None:
    assert value_text(value, unit) == text


def many_held() -> Look:
    keys = ("kernels", "copies", "memsets", "gpu_activities", "launches", "copies.dtod", "copies.htod")
    facts = examine(read(NAIVE)).facts
    scopes = [facts.scope(name) for name in ("attn_fwd", "whole")]
    claims = [
        claim(key, "==", scope.value(key), scope=scope.scope.name)
        for scope in scopes
        if scope is not None
        for key in keys
        if scope.value(key) is not None
    ]
    return examine(read(NAIVE), [Guess(tuple(claims))])


def test_held_claims_are_all_listed_in_markdown_and_the_terminal_says_where() -> None:
    look = many_held()
    n = len(look.verdict.held)
    assert n > 9
    text = terminal.render(look)
    assert text.count("  held  ") == 9
    assert f"{n - 8} more; --format markdown or json lists all" in text
    assert markdown.render(look).count("- held: ") == n


def test_markdown_names_the_verb(judged: Look) -> None:
    checked, looked = markdown.render(judged, source="t.json"), markdown.render(examine(read(NAIVE)))
    assert checked.startswith("<!-- tracehunch:check -->\n\n## tracehunch check <code>t.json</code>")
    assert looked.startswith("<!-- tracehunch:look -->\n\n## tracehunch look ")


def test_the_order_of_findings_is_said_as_it_is() -> None:
    two = examine(read(NAIVE.with_name("sdpa_math.json.gz")))
    text = terminal.render(two)
    severities = re.findall(r"^  (warning|note)  ", text.split("\nFindings")[1], re.MULTILINE)
    assert severities == sorted(severities, reverse=True)
    assert "warnings first, then by time at stake" in text
    one_severity = terminal.render(examine(read(NAIVE))).split("\nFindings")[1].splitlines()[0]
    assert one_severity.strip() == "2 warnings; by time at stake"
