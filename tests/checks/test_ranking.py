"""What is at stake is not counted twice: constructed findings on the kernels of a recorded trace."""

import pytest

from tracehunch.checks._ranking import ranked
from tracehunch.trace.model import Cat
from tracehunch.verdict import Finding


def finding(name, stake, rows, trace, severity="warning"):
    return Finding(name, "attn_fwd", severity, "high", stake, "s", "c.", "f", trace.events(rows))


@pytest.fixture
def trace(facts_of):
    return facts_of("seeds/naive").tree.trace


def test_the_larger_saving_comes_first_and_keeps_all(trace):
    kernels = trace.rows(Cat.KERNEL)
    found = ranked(
        [finding("small", 10, kernels[:2], trace), finding("large", 90, kernels[2:6], trace)], trace
    )
    assert [(f.id, f.time_at_stake_us) for f in found] == [("large", 90), ("small", 10)]


def test_what_is_nested_yields_everything(trace):
    kernels = trace.rows(Cat.KERNEL)
    found = ranked(
        [finding("inner", 50, kernels[2:4], trace), finding("outer", 90, kernels[:6], trace)], trace
    )
    assert [(f.id, f.time_at_stake_us) for f in found] == [("outer", 90), ("inner", 0)]
    assert (
        found[1].cause == "c. Of its time at stake 50.00 us is counted under outer, whose fix removes it too."
    )


def test_what_overlaps_yields_its_share_by_duration(trace):
    kernels = trace.rows(Cat.KERNEL)
    shared, own = kernels[2], kernels[3]
    first = finding("first", 90, [kernels[0], shared], trace)
    second = finding("second", 60, [shared, own], trace)
    share = trace.dur_ns[own] / (trace.dur_ns[shared] + trace.dur_ns[own])
    assert ranked([second, first], trace)[1].time_at_stake_us == pytest.approx(60 * share, abs=1e-3)


def test_notes_without_a_saving_neither_claim_nor_yield(trace):
    kernels = trace.rows(Cat.KERNEL)
    note = finding("note", 0, kernels, trace, severity="note")
    found = ranked([note, finding("real", 5, kernels[:1], trace)], trace)
    assert [(f.id, f.time_at_stake_us) for f in found] == [("real", 5), ("note", 0)]
    assert found[1].cause == "c."


def test_equal_savings_are_ordered_by_severity(trace):
    kernels = trace.rows(Cat.KERNEL)
    weak = finding("a-note", 5, kernels[:1], trace, severity="note")
    strong = finding("b-warning", 5, kernels[1:2], trace)
    assert [f.id for f in ranked([weak, strong], trace)] == ["b-warning", "a-note"]


def test_host_rows_are_claimed_where_no_gpu_activity_is_cited(trace):
    ops = trace.rows(Cat.CPU_OP)
    found = ranked([finding("one", 9, ops[:3], trace), finding("two", 6, ops[:3], trace)], trace)
    assert [f.time_at_stake_us for f in found] == [9, 0]
