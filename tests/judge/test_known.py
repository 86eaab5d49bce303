"""Findings that a guess knows: what they are called, when they have grown, and that they explain nothing."""

from dataclasses import replace

import pytest

from tracehunch import api
from tracehunch.guess import Guess
from tracehunch.guess.claims import claims_from_mapping
from tracehunch.judge import judge
from tracehunch.judge.known import grown, is_known, known_as, new_findings
from tracehunch.verdict import Checked, Finding

COPY = Finding(
    id="hidden-copy",
    scope="fwd",
    severity="warning",
    confidence="high",
    time_at_stake_us=1.0,
    summary="",
    cause="",
    fix="",
    evidence=(),
    subject="aten::masked_fill",
    per_call=1.0,
)


def knowing(*known):
    return Guess((), known=known)


@pytest.mark.parametrize(
    ("per_call", "name"),
    [(1.0, "x1"), (1.5, "x1.5"), (1200.0, "x1,200"), (0.0, "")],
)
def test_a_finding_is_called_by_id_scope_op_and_count(per_call, name):
    found = replace(COPY, per_call=per_call)
    assert known_as(found) == f"hidden-copy in fwd: aten::masked_fill {name}".rstrip()
    assert is_known(found, knowing(known_as(found)))
    assert not is_known(found, knowing())


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        ("hidden-copy in fwd: aten::masked_fill x1", True),
        ("hidden-copy in fwd: aten::masked_fill x1,200", True),
        ("hidden-copy in fwd", True),
        ("hidden-copy in fwd: aten::masked_fill x0.5", False),
        ("hidden-copy in fwd: aten::masked_fill x0.5.5", False),
        ("hidden-copy in fwd: aten::masked_fill", False),
        ("hidden-copy in fwd: aten::reshape x1", False),
        ("hidden-copy in bwd: aten::masked_fill x1", False),
        ("layout-copy in fwd: aten::masked_fill x1", False),
    ],
)
def test_more_of_it_or_another_op_is_news(entry, known):
    assert is_known(COPY, knowing(entry)) == known
    assert new_findings([COPY], knowing(entry)) == (() if known else (COPY,))


def test_what_has_grown_is_told_by_how_much():
    (found,) = grown([replace(COPY, per_call=5.0)], knowing("hidden-copy in fwd: aten::masked_fill x3"))
    assert found.per_call == 2.0


def verdict(look, claims, known=(), who="baseline", findings=None):
    guess = Guess(claims_from_mapping("attn_fwd", claims, who), known=known)
    return judge([guess], look.facts, look.checked if findings is None else Checked(findings)).surprises


@pytest.fixture(scope="module")
def naive(h200):
    return api.look(h200 / "seeds/naive.json.gz")


def test_what_was_there_before_does_not_explain_a_change(naive):
    known = ("hidden-copy in attn_fwd: aten::masked_fill x1",)
    (found,) = verdict(naive, {"copies": 0})
    assert found.explained_by == ("hidden-copy",)
    (found,) = verdict(naive, {"copies": 0}, known)
    assert found.explained_by == ()


def test_more_copies_than_a_baseline_grew_by_are_not_all_new(naive):
    three = [replace(one, per_call=3.0) for one in naive.checked.findings]
    (found,) = verdict(naive, {"copies": 0}, findings=tuple(three))
    assert found.explained_by == ()
    two_known = ("hidden-copy in attn_fwd: aten::masked_fill x2",)
    (found,) = verdict(naive, {"copies": 0}, two_known, findings=tuple(three))
    assert found.explained_by == ("hidden-copy",)
    (found,) = verdict(naive, {"copies": "<= 0"}, who="user", findings=tuple(three))
    assert found.explained_by == ("hidden-copy",)


@pytest.mark.parametrize(
    ("key", "explained"),
    [
        ("copies", True),
        ("copies.dtod", True),
        ("any_copies", True),
        ("gpu_activities", True),
        ("kernels", False),
    ],
)
def test_a_finding_explains_counts_of_what_it_rests_on(naive, key, explained):
    copies = tuple(one for one in naive.checked.findings if one.id == "hidden-copy")
    (found,) = verdict(naive, {key: 0}, who="user", findings=copies)
    assert bool(found.explained_by) == explained


def test_on_a_cpu_its_copies_are_leaf_ops(cpu):
    look = api.look(cpu / "masked_fill.json.gz")
    seen = look.facts.scope("forward").value("leaf_ops")
    (claim,) = claims_from_mapping("forward", {"leaf_ops": seen - 2}, "baseline")
    (found,) = judge([Guess((claim,))], look.facts, look.checked).surprises
    assert found.explained_by == ("hidden-copy",)
