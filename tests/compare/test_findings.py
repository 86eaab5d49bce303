"""Findings that are new, gone or grown, and what of all that fails a gate."""

from dataclasses import replace

import pytest

from tracehunch.compare import diff
from tracehunch.compare.findings import compare_findings
from tracehunch.verdict import Checked

PADDED = "h200/models/llama_sdpa_padded"


def with_findings(look, *findings):
    return replace(look, checked=Checked(tuple(findings)))


@pytest.fixture
def copy(seen):
    look = seen("h200/seeds/naive")
    return look, next(one for one in look.checked.findings if one.id == "hidden-copy")


def test_new_and_gone(copy):
    look, finding = copy
    assert compare_findings(with_findings(look), look, [])[0] == look.checked.findings
    assert compare_findings(look, with_findings(look), [])[1] == look.checked.findings
    other = replace(finding, subject="aten::softmax")
    new, gone, grown = compare_findings(with_findings(look, finding), with_findings(look, other), [])
    assert (new, gone, grown) == ((other,), (finding,), ())


def test_the_scope_is_the_one_it_was_matched_with(copy, changed):
    look, finding = copy
    pairs = [scope.pair for scope in changed("h200/seeds/naive", "h200/seeds/sdpa_flash").scopes]
    moved = replace(finding, scope="sdpa_fwd")
    assert compare_findings(with_findings(look, finding), with_findings(look, moved), pairs) == ((), (), ())


@pytest.mark.parametrize(
    ("change", "grows"),
    [
        ({}, False),
        ({"per_call": 2.0}, True),
        ({"severity": "error"}, True),
        ({"severity": "note"}, False),
        ({"time_at_stake_us": 1e6}, False),  # as many activities, whose times vary
    ],
)
def test_growth(copy, change, grows):
    look, finding = copy
    after = replace(finding, **change)
    _, _, grown = compare_findings(with_findings(look, finding), with_findings(look, after), [])
    assert [(one.before, one.after) for one in grown] == ([(finding, after)] if grows else [])


def test_one_of_a_scope_is_the_same_whatever_it_was_seen_by(changed):
    found = changed("h200/ops/naive_fp32", "h200/ops/naive_compiled")
    ids = [one.id for one in (*found.new, *found.gone)]
    assert "unfused-attention" not in ids  # by hand on both sides, one of them compiled
    assert "hidden-copy" in ids


def test_a_finding_that_moved_to_another_scope_is_neither_new_nor_gone(copy):
    look, finding = copy
    elsewhere = replace(finding, scope="whole")
    assert compare_findings(with_findings(look, finding), with_findings(look, elsewhere), []) == ((), (), ())


def test_two_of_one_kind_do_not_stand_for_each_other(copy):
    look, finding = copy
    before = [replace(finding, id="host-stall", subject=name) for name in ("a", "b")]
    after = [replace(finding, id="host-stall", subject="c")]
    new, gone, _ = compare_findings(with_findings(look, *before), with_findings(look, *after), [])
    assert (len(new), len(gone)) == (0, 0)  # no scope of theirs was matched: the kind has to do


def test_a_gpu_that_waits_grows_by_time_alone(copy):
    look, finding = copy
    before = replace(finding, id="overhead-bound", per_call=24.0, time_at_stake_us=1000.0)
    for change, grows in (({"per_call": 42.0}, False), ({"time_at_stake_us": 2000.0}, True)):
        after = replace(before, **change)
        _, _, grown = compare_findings(with_findings(look, before), with_findings(look, after), [])
        assert bool(grown) is grows


def test_a_time_without_a_count_grows_when_it_grows_much(copy):
    look, finding = copy
    before = replace(finding, per_call=0.0, time_at_stake_us=100.0)
    for factor, grows in ((1.1, False), (2.0, True)):
        after = replace(before, time_at_stake_us=factor * before.time_at_stake_us)
        _, _, grown = compare_findings(with_findings(look, before), with_findings(look, after), [])
        assert bool(grown) is grows


def test_slower_is_a_warning_told_once_and_a_note_on_another_gpu(seen, changed):
    regressions = changed("h200/models/llama_sdpa_prefill", PADDED).regressions
    slower = [one for one in regressions if "is slower" in one.text]
    assert [(one.severity, one.text.partition(":")[0]) for one in slower] == [
        ("warning", "model_fwd is slower"),
        ("warning", "model_fwd is slower"),
    ]
    look = seen(PADDED)
    trace = look.facts.tree.trace
    header = replace(trace.header, devices=(replace(trace.header.devices[0], name="NVIDIA A100"),))
    elsewhere = replace(look.facts.tree, trace=replace(trace, header=header))
    other = replace(look, facts=replace(look.facts, tree=elsewhere))
    found = diff(seen("h200/models/llama_sdpa_prefill"), other)
    assert {one.severity for one in found.regressions if "is slower" in one.text} == {"note"}


def test_faster_is_no_regression(changed):
    assert not [
        one for one in changed(PADDED, "h200/models/llama_sdpa_prefill").regressions if "slower" in one.text
    ]
