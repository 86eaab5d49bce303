"""Which scope is compared with which."""

import json

import pytest

from tracehunch.compare import diff
from tracehunch.compare.scopes import match_scopes
from tracehunch.errors import TracehunchError
from tracehunch.facts import measure
from tracehunch.trace import read_bytes
from tracehunch.tree import link


def facts(*spans, label="t.json"):
    """Facts of annotations (name, start, end) with an op in each."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": n, "ts": a, "dur": b - a, "pid": 1, "tid": 1}
        for n, a, b in spans
    ]
    events += [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": a + 1, "dur": 1, "pid": 1, "tid": 1}
        for _, a, _ in spans
    ]
    return measure(link(read_bytes(json.dumps({"traceEvents": events}).encode(), label)))


def matched(before, after, given=()):
    pairs, only_before, only_after = match_scopes(before, after, given)
    named = {(p.before.scope.name, p.after.scope.name): p.matched for p in pairs}
    named.pop(("whole", "whole"))
    return named, [s.scope.name for s in only_before], [s.scope.name for s in only_after]


def test_names_match():
    one = facts(("forward", 0, 10), ("backward", 20, 30))
    assert matched(one, one) == ({("forward", "forward"): "name", ("backward", "backward"): "name"}, [], [])


def test_the_only_annotation_of_another_name_is_the_same_one():
    found = matched(facts(("attn_fwd", 0, 10)), facts(("sdpa_fwd", 0, 10)))
    assert found == ({("attn_fwd", "sdpa_fwd"): "position"}, [], [])


def test_two_of_another_name_are_not_guessed_at():
    found = matched(facts(("a", 0, 10), ("b", 20, 30)), facts(("c", 0, 10), ("d", 20, 30)))
    assert found == ({}, ["a", "b"], ["c", "d"])


def test_what_is_left_over_inside_a_matched_scope_is_of_that_place():
    before = facts(("step", 0, 100), ("attn", 10, 20), ("mlp", 30, 40), ("load", 200, 210))
    after = facts(("step", 0, 100), ("flash", 10, 20), ("mlp", 30, 40), ("fetch", 200, 210))
    assert matched(before, after)[0] == {
        ("step", "step"): "name", ("mlp", "mlp"): "name",
        ("attn", "flash"): "position", ("load", "fetch"): "position",
    }  # fmt: skip


def test_an_annotation_inside_one_that_is_left_over_waits_for_it():
    before = facts(("outer_a", 0, 100), ("inner_a", 10, 20))
    after = facts(("outer_b", 0, 100), ("inner_b", 10, 20))
    assert matched(before, after)[0] == {
        ("outer_a", "outer_b"): "position",
        ("inner_a", "inner_b"): "position",
    }


def test_pairs_that_are_given_go_first():
    before, after = facts(("a", 0, 10), ("b", 20, 30)), facts(("a", 0, 10), ("b", 20, 30))
    named, only_before, only_after = matched(before, after, [("a", "b")])
    assert named == {("a", "b"): "given", ("b", "a"): "position"}
    assert only_before == only_after == []


def test_a_scope_that_is_given_and_not_there_is_an_error_with_the_one_that_was_meant():
    before = facts(("forward", 0, 10), label="one.json")
    with pytest.raises(TracehunchError, match=r"one\.json has no scope 'forwards'; did you mean forward\?"):
        match_scopes(before, before, [("forwards", "forward")])


def test_compiled_regions_match_whatever_their_numbers(seen):
    look = seen("h200/ops/geglu_compiled")
    region = next(s for s in look.facts.scopes if s.scope.name.startswith("Torch-Compiled Region"))
    pairs, *_ = match_scopes(look.facts, seen("h200/models/llama_sdpa_compiled").facts)
    names = {pair.before.scope.name: pair.after.scope.name for pair in pairs}
    assert names[region.scope.name] == "Torch-Compiled Region: 0/0"


def test_a_match_by_position_is_said(changed):
    result = changed("h200/seeds/naive", "h200/seeds/sdpa_flash")
    assert any("attn_fwd is compared with sdpa_fwd" in note for note in result.notes)
    assert result.scopes[0].pair.name == "attn_fwd -> sdpa_fwd"


def test_given_scopes_reach_the_comparison(seen):
    look = seen("h200/models/llama_sdpa_train")
    result = diff(look, look, [("forward", "optimizer")])
    assert any(scope.pair.name == "forward -> optimizer" for scope in result.scopes)


def test_the_same_pair_given_twice_counts_once_and_one_scope_with_two_is_refused():
    one = facts(("a", 0, 10), ("b", 20, 30))
    assert matched(one, one, [("a", "a"), ("a", "a")])[0] == matched(one, one, [("a", "a")])[0]
    with pytest.raises(TracehunchError, match="the scope 'a' before is given twice"):
        match_scopes(one, one, [("a", "a"), ("a", "b")])
