"""What is at stake is not counted twice: constructed findings on kernels and idle time of recorded traces."""

import numpy as np
import pytest

from tracehunch.checks._budget import budgets_us
from tracehunch.checks._idle import IdleCause, idle_of
from tracehunch.checks._ranking import ranked
from tracehunch.trace.model import Cat
from tracehunch.verdict import Finding


@pytest.fixture
def facts(facts_of):
    return facts_of("seeds/naive")


@pytest.fixture
def finding(facts):
    def make(name, stake, rows, severity="warning"):
        return Finding(
            name, "attn_fwd", severity, "high", stake, "s", "c.", "f", facts.tree.trace.events(rows)
        )

    return make


@pytest.fixture
def kernels(facts):
    return facts.tree.trace.rows(Cat.KERNEL)


def stakes(found):
    return [(f.id, f.time_at_stake_us) for f in found]


def test_the_larger_saving_comes_first_and_keeps_all(facts, finding, kernels):
    found = ranked([finding("small", 10, kernels[:2]), finding("large", 90, kernels[2:6])], facts)
    assert stakes(found) == [("large", 90), ("small", 10)]


def test_what_is_nested_yields_everything(facts, finding, kernels):
    found = ranked([finding("inner", 50, kernels[2:4]), finding("outer", 90, kernels[:6])], facts)
    assert stakes(found) == [("outer", 90), ("inner", 0)]
    assert (
        found[1].cause == "c. Of its time at stake 50.00 us is counted under outer, whose fix removes it too."
    )


def test_what_overlaps_yields_its_share_by_duration(facts, finding, kernels):
    shared, own = kernels[2], kernels[3]
    lengths = facts.tree.trace.dur_ns
    share = lengths[own] / (lengths[shared] + lengths[own])
    found = ranked([finding("second", 60, [shared, own]), finding("first", 90, [kernels[0], shared])], facts)
    assert found[1].time_at_stake_us == pytest.approx(60 * share, abs=1e-3)


def test_notes_without_a_saving_neither_claim_nor_yield(facts, finding, kernels):
    found = ranked([finding("note", 0, kernels, "note"), finding("real", 5, kernels[:1])], facts)
    assert stakes(found) == [("real", 5), ("note", 0)]
    assert found[1].cause == "c."


def test_equal_savings_are_ordered_by_severity(facts, finding, kernels):
    found = ranked([finding("a-note", 5, kernels[:1], "note"), finding("b-warning", 5, kernels[1:2])], facts)
    assert [f.id for f in found] == ["b-warning", "a-note"]


def test_host_rows_are_claimed_where_no_gpu_activity_is_cited(facts, finding):
    ops = facts.tree.trace.rows(Cat.CPU_OP)
    found = ranked([finding("one", 9, ops[:3]), finding("two", 6, ops[:3])], facts)
    assert stakes(found) == [("one", 9), ("two", 0)]


def of_idle(facts, name, stake, pieces):
    launches = facts.tree.trace.events(facts.tree.launches[:1])
    return Finding(
        name, "step", "warning", "high", stake, "s", "c.", "f", launches, idle=tuple(pieces.tolist())
    )


def test_a_piece_of_idle_time_is_claimed_once_and_host_evidence_beside_it_claims_nothing(facts_of):
    facts = facts_of("faults/clean")
    pieces = idle_of(facts).of(IdleCause.LAUNCH)
    apart = [of_idle(facts, "one", 9, pieces[:10]), of_idle(facts, "two", 6, pieces[10:20])]
    assert stakes(ranked(apart, facts)) == [("one", 9), ("two", 6)]
    shared = [of_idle(facts, "one", 9, pieces[:10]), of_idle(facts, "two", 6, pieces[5:15])]
    length = idle_of(facts).length_us
    kept = length[pieces[10:15]].sum() / length[pieces[5:15]].sum()
    assert ranked(shared, facts)[1].time_at_stake_us == pytest.approx(6 * kept, abs=1e-3)


def test_what_is_said_of_the_whole_program_yields_to_what_names_a_part(facts_of):
    facts = facts_of("faults/clean")
    pieces = idle_of(facts).of(IdleCause.LAUNCH)
    whole = of_idle(facts, "overhead-bound", 900, pieces)
    part = of_idle(facts, "unfused-optimizer", 100, pieces[:10])
    found = {f.id: f for f in ranked([whole, part], facts)}
    assert found["unfused-optimizer"].time_at_stake_us == 100
    length = idle_of(facts).length_us
    left = 900 * length[pieces[10:]].sum() / length[pieces].sum()
    assert found["overhead-bound"].time_at_stake_us == pytest.approx(left, abs=1e-3)
    assert "is counted under unfused-optimizer" in found["overhead-bound"].cause


def test_findings_of_a_scope_claim_no_more_than_its_time(facts, finding, kernels):
    budget = budgets_us(facts)["attn_fwd"]
    found = ranked(
        [finding("large", 0.9 * budget, kernels[:1]), finding("rest", 0.5 * budget, kernels[1:2])], facts
    )
    assert found[1].time_at_stake_us == pytest.approx(0.1 * budget, abs=1e-3)
    assert "cut to what is left" in found[1].cause
    assert "cut to what is left" not in found[0].cause


def test_a_scopes_time_lasts_until_its_last_activity_has_ended(facts, raw):
    events = [e for e in raw("seeds/naive")["traceEvents"] if e.get("ph") == "X"]
    calls = [e for e in events if e.get("cat") == "user_annotation" and e["name"] == "attn_fwd"]
    lengths = []
    for call in calls:
        ids = {
            e["args"]["correlation"]
            for e in events
            if e.get("cat", "").startswith("cuda_")
            and e["tid"] == call["tid"]
            and call["ts"] <= e["ts"] < call["ts"] + call["dur"]
        }
        ends = [
            e["ts"] + e["dur"]
            for e in events
            if e.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"} and e["args"]["correlation"] in ids
        ]
        lengths.append(max([*ends, call["ts"] + call["dur"]]) - call["ts"])
    assert budgets_us(facts)["attn_fwd"] == pytest.approx(np.median(lengths), abs=0.01)
