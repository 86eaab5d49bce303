"""What most ranks have, told once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.compare.ranks.recorded import DATA
from tests.compare.ranks.summaries import job

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.examine import examine
from tracehunch.verdict import Finding


def finding(stake, name="host-stall", severity="warning", **changes):
    made = Finding(name, "ProfilerStep", severity, "high", stake, "the host stalls", "Why.", "how", (1, 2))
    return replace(made, **changes)


def found(findings):
    """Give each rank its findings; what is said of the job."""
    ranks = [
        replace(one, findings=tuple(mine)) for one, mine in zip(job(len(findings)), findings, strict=True)
    ]
    return [one for one in compare(ranks).findings if one.id != "exposed-communication"]


def test_on_all_ranks():
    (one,) = found([[finding(10.0)], [finding(40.0)], [finding(20.0)]])
    assert one.summary == "on all 3 ranks, 10.00-40.00 us at stake on each: the host stalls"
    assert (one.time_at_stake_us, one.severity, one.evidence) == (20.0, "warning", (1, 2))
    assert one.cause.endswith("The numbers here are rank 0's; at stake is the median over the ranks.")


def test_on_most_ranks_the_evidence_is_of_one_that_has_it():
    (one,) = found([[], [finding(10.0)], [finding(20.0)], [finding(30.0)]])
    assert one.summary.startswith("on 3 of 4 ranks, ")
    assert one.evidence == ()
    assert "See events 1, 2 in its file." in one.cause


def test_in_other_scopes_on_other_ranks():
    (one,) = found([[finding(10.0)], [finding(20.0, scope="load")]])
    assert one.summary.startswith("on all 2 ranks")


def test_notes_and_what_all_together_answer_better_are_left_out():
    assert found([[finding(1.0, severity="note")]] * 2) == []
    assert found([[finding(1.0, "straggler")]] * 2) == []
    assert found([[finding(1.0, severity="note")], [finding(2.0)]]) != []  # half of them warn


def test_at_most_eight_the_costliest():
    many = [finding(float(i), f"check-{i}") for i in range(1, 11)]
    assert [one.time_at_stake_us for one in found([many, many])] == [10, 9, 8, 7, 6, 5, 4, 3]


def test_one_rank_alone_has_its_own():
    (one,) = found([[finding(10.0)]])
    assert one == finding(10.0)


def test_waiting_for_a_straggler_is_told_as_that():
    late = np.zeros((4, 10), dtype=np.int64)
    late[1] = 2_000_000
    stall = (finding(900.0, "sync-stall"),)
    even = [replace(one, findings=stall) for one in job(4, 10)]
    ranks = [replace(one, findings=stall) for one in job(4, 10, late_ns=late, busy=2_000_000 + late)]
    assert {one.id for one in compare(even).findings} == {"exposed-communication", "sync-stall"}
    assert {one.id for one in compare(ranks).findings} == {"exposed-communication", "straggler"}


@pytest.mark.parametrize("name", ["ddp_turns"])
def test_hosts_that_sleep_in_turns(name):
    """Each rank sleeps for 20 ms in every second step, while its GPU has nothing to do."""
    ranks = [examine(DATA / "h200_ranks" / name / f"rank{i}.json.xz") for i in (0, 1)]
    stall = next(one for one in compare(ranks).findings if one.id == "host-stall")
    assert stall.summary.startswith("on all 2 ranks, 9.668-10.23 ms at stake on each: ")
    assert stall.time_at_stake_us == pytest.approx(9_950, rel=0.01)
    alone = compare(ranks[:1]).findings
    assert {"host-stall", "hidden-copy"} <= {one.id for one in alone}
