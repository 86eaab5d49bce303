"""Ranks that are unlike the others."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.compare.ranks.summaries import job

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.model import Odd
from tracehunch.compare.ranks.odd import COUNTS, LOOSE, WORDS
from tracehunch.facts.vocabulary import KEYS
from tracehunch.verdict import Finding

USUAL = {
    "kernels": 90,
    "launches": 119,
    "sdpa.backend": "flash",
    "dtype": "bf16",
    "syncs": 4,
    "wall_time_us": 9.0,
}


def odd(*facts, ranks=None, **changes):
    """What is odd of ranks whose steps have such facts."""
    made = [
        replace(one, facts={"ProfilerStep": {**USUAL, **mine}}, **changes)
        for one, mine in zip(ranks or job(len(facts)), facts, strict=True)
    ]
    return compare(made).odd


def test_the_keys_are_facts():
    assert {*COUNTS, *LOOSE, *WORDS} <= set(KEYS)


def test_ranks_that_are_alike():
    assert odd({}, {}, {}, {}) == ()


def test_one_rank_with_another_backend_and_more_kernels():
    math = {"sdpa.backend": "math", "kernels": 221}
    assert odd({}, {}, math, {}) == (
        Odd(2, "ProfilerStep", "kernels", 221, 90, 3),
        Odd(2, "ProfilerStep", "sdpa.backend", "math", "flash", 3),
    )


def test_of_two_ranks_neither_is_the_odd_one():
    assert odd({}, {"kernels": 91}) == (Odd(1, "ProfilerStep", "kernels", 91, 90, 1),)


def test_without_a_clear_majority_nothing_is_odd():
    assert odd({}, {"kernels": 7}, {"kernels": 7}, {}) == ()
    assert odd(*({"kernels": 80 + i} for i in range(6))) == ()


@pytest.mark.parametrize(("syncs", "number"), [(5, 0), (6, 0), (40, 1)])
def test_what_varies_by_chance_has_to_vary_much(syncs, number):
    assert len(odd({}, {}, {"syncs": syncs}, {})) == number


def test_times_of_scopes_are_never_odd():
    assert odd({}, {}, {"wall_time_us": 900.0, "gpu_time_us": 7.0}, {"gpu_time_us": 1.0}) == ()


def test_lists_in_another_order_are_the_same():
    assert odd({"dtype": ("bf16", "fp32")}, {"dtype": ("fp32", "bf16")}) == ()


def test_a_difference_is_told_where_it_is_and_not_again_around_it():
    ranks = job(3)
    facts = [
        {"attention": {"kernels": 5 + extra, "wall_time_us": 1.0}, "ProfilerStep": {"kernels": 90 + extra}}
        for extra in (0, 16, 0)
    ]
    found = compare([replace(one, facts=mine) for one, mine in zip(ranks, facts, strict=True)]).odd
    assert found == (Odd(1, "attention", "kernels", 21, 5, 2),)


def test_an_annotation_that_one_rank_alone_has():
    ranks = job(3)
    ranks[1] = replace(ranks[1], facts={"save": {"wall_time_us": 1.0}})
    assert compare(ranks).odd == (Odd(1, "save", "annotation", "recorded", "not recorded", 2),)


def test_an_op_that_one_gpu_takes_longer_for():
    times = [{"aten::mm": us, "aten::add": 90.0} for us in (1000.0, 1010.0, 1500.0, 990.0)]
    ranks = [replace(one, gpu_time_us_by_op=mine) for one, mine in zip(job(4), times, strict=True)]
    assert compare(ranks).odd == (Odd(2, "aten::mm", "gpu_time_us", 187.5, 125.0, 3),)  # of 8 steps


def test_stages_of_a_pipeline_are_not_compared():
    ranks = [replace(one, collectives=replace(one.collectives, kinds=("send",))) for one in job(3)]
    assert odd({}, {"kernels": 7}, {}, ranks=ranks) == ()


def finding(name, severity="warning", stake=5.0):
    return Finding(name, "ProfilerStep", severity, "high", stake, "the host stalls", "why", "how", (1,))


def test_findings_that_the_others_lack_are_told():
    ranks = job(4)
    ranks[3] = replace(
        ranks[3], findings=(finding("host-stall"), finding("clock-jitter"), finding("recompile", "note"))
    )
    found = compare(ranks).findings
    assert [(one.id, one.summary) for one in found if one.id != "exposed-communication"] == [
        ("host-stall", "rank 3 only, of 4: the host stalls")
    ]


def test_findings_that_all_have_are_not():
    ranks = [
        replace(one, findings=(finding("host-stall", "note" if one.rank else "warning"),)) for one in job(3)
    ]
    assert [one.id for one in compare(ranks).findings if one.id == "host-stall"] == []
