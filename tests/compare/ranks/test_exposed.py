"""How much communication is exposed, and what of it is waiting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.compare.ranks.summaries import job

from tracehunch.compare.ranks import compare


def exposed(ranks):
    return next((one for one in compare(ranks).findings if one.id == "exposed-communication"), None)


def test_waiting_and_moving_add_up_to_what_the_ranks_expose(examined):
    ranks = [examined(f"h200/ranks/ddp/rank{i}") for i in (0, 1)]
    found = exposed(ranks)
    whole = sum(part.exposed_communication_ns for one in ranks for part in one.breakdown) / 6e3  # of 6 steps
    assert f"{whole / 1e3:.3f} ms a step" in found.summary
    moving, waiting, unknown = 0.5486, 6.726, 1.195
    assert moving + waiting + unknown == pytest.approx(whole / 1e3, abs=0.002)
    assert "548.6 us moves data, 6.726 ms waits for other ranks, 1.195 ms cannot be told" in found.summary
    assert found.severity == "note"


def test_the_rank_that_is_waited_for_is_named(examined):
    cause = exposed([examined(f"h200/ranks/ddp/rank{i}") for i in (0, 1)]).cause
    assert "Rank 1 waits most, 18.45 ms a step overlapped or not, mostly for rank 0" in cause
    assert "The host of rank 0 needs 1.470 ms more a step (25.86 ms, against 24.39 ms)" in cause


def hosts(own, other):
    """The cause where rank 1 waits for rank 0, and what the hosts of rank 0 and 1 need."""
    late = np.zeros((2, 9), dtype=np.int64)
    late[0] = 2_000_000
    return exposed(job(2, 9, late_ns=late, host=[[own], [other]])).cause


def test_a_host_is_only_said_to_need_more_where_it_does():
    text = "The host of rank 0 needs 300.0 us more a step (5.300 ms, against 5.000 ms), spread over all ops."
    assert text in hosts(5_300_000, 5_000_000)
    assert "for rank 0. The host of rank 0 needs hardly more than that of rank 1" in hosts(
        5_050_000, 5_000_000
    )
    cause = hosts(5_100_000, 5_600_000)
    assert "for rank 0. The host of rank 0 needs no more than that of rank 1" in cause
    assert "more a step" not in cause


def test_more_microbatches_only_where_no_host_is_the_limit():
    late = np.zeros((2, 9), dtype=np.int64)
    late[0] = 2_000_000
    ranks = [
        replace(one, collectives=replace(one.collectives, kinds=("send",))) for one in job(2, 9, late_ns=late)
    ]
    assert exposed(ranks).fix.startswith("More microbatches")
    part = ranks[1].breakdown[0]
    ranks[1] = replace(ranks[1], breakdown=(replace(part, idle_ns={"launch": part.window_ns * 7 // 10}),))
    assert exposed(ranks).fix.startswith("The hosts are the limit: the GPU of rank 1 waits for launches 70%")


def test_what_moves_data_is_at_stake_and_no_more_than_compute_can_hide():
    ranks = job(2, transfer := 8)
    assert transfer == 8
    found = exposed(ranks)
    assert found.time_at_stake_us == pytest.approx(800, rel=0.05)  # four of 200 us a step
    few = [replace(one, breakdown=(replace(one.breakdown[0], compute_ns=1_600_000),)) for one in ranks]
    assert exposed(few).time_at_stake_us == pytest.approx(200, rel=0.01)


def test_nothing_is_said_where_hardly_anything_is_exposed():
    ranks = [
        replace(one, breakdown=(replace(one.breakdown[0], exposed_communication_ns=9_000),)) for one in job(2)
    ]
    assert exposed(ranks) is None


def test_ranks_that_take_turns_are_not_blamed():
    late = np.zeros((3, 9), dtype=np.int64)
    late[np.arange(9) % 3, np.arange(9)] = 900_000
    assert "for no rank in particular: they take turns" in exposed(job(3, 9, late_ns=late)).cause


def test_what_waits_for_a_rank_that_is_missing_moves_no_data():
    late = np.zeros((4, 9), dtype=np.int64)
    late[3] = 2_000_000
    ranks = job(4, 9, late_ns=late)
    whole, lacking = exposed(ranks), exposed(ranks[:3])
    assert "moves data" in whole.summary
    assert "cannot be told" not in whole.summary
    assert (
        "2.792 ms cannot be told, in collectives that were not found on all of their ranks" in lacking.summary
    )
    assert "moves data" not in lacking.summary
    assert (lacking.time_at_stake_us, lacking.severity) == (0, "note")
    assert lacking.fix.startswith("Record all ranks over the same steps")


def test_files_that_tell_no_process_groups_leave_it_open():
    ranks = [
        replace(one, collectives=replace(one.collectives, group=np.full_like(one.collectives.group, -1)))
        for one in job(2)
    ]
    found = exposed(ranks)
    assert found.summary.endswith("cannot be told, in collectives that were not found on all of their ranks")
    assert "moves data" not in found.summary
    assert "waits" not in found.summary
    assert found.fix.startswith("Record with a recent PyTorch")


def test_the_slowest_stage_of_a_pipeline_is_named():
    late = np.zeros((3, 9), dtype=np.int64)
    late[1] = 2_000_000
    ranks = [
        replace(one, collectives=replace(one.collectives, kinds=("send",)))
        for one in job(3, 9, late_ns=late, busy=2_000_000 + late)
    ]
    found = exposed(ranks)
    assert "The GPU of rank 1 has most to do: " in found.cause
    assert found.fix.startswith("Give all stages as much to do")
    even = [replace(one, steps=like.steps) for one, like in zip(ranks, job(3, 9, late_ns=late), strict=True)]
    assert "has most to do" not in exposed(even).cause
