"""Files of several jobs and ranks in one folder: real jobs of two ranks that differ in their annotations."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tracehunch.compare.over_time import cycle_of, over_time
from tracehunch.compare.over_time.jobs import jobs_of, step_range
from tracehunch.trace import read

JOBS = Path(__file__).parents[2] / "data" / "h200_ranks"
HOUR_NS = 3_600_000_000_000


@cache
def ranks_of(job):
    """Return the cycles of both ranks of a recorded job, as if they lay in one folder."""
    return tuple(
        replace(cycle_of(read(path), f"traces/{job}_{path.name}"), label=f"{job}_{path.name}")
        for path in sorted((JOBS / job).iterdir())
    )


def later(cycle, ns, steps=0, **changes):
    """Return the same cycle at another time."""
    scopes = {
        name: replace(
            one, start_ns=one.start_ns + ns, end_ns=one.end_ns + ns, step=one.step + steps, name=one.name
        )
        for name, one in cycle.scopes.items()
    }
    moved = replace(cycle, start_ns=cycle.start_ns + ns, end_ns=cycle.end_ns + ns, scopes=scopes)
    return replace(moved, **{"fingerprint": f"{cycle.fingerprint} {ns} {changes}", **changes})


def told(cycles):
    return [sorted((cycle.rank, cycle.label) for cycle in job) for job in jobs_of(cycles)]


@pytest.mark.parametrize("job", ["ddp_host_straggler", "ddp_gpu_straggler"])
def test_ranks_of_one_job_may_differ_in_their_annotations(job):
    first, second = ranks_of(job)
    assert set(first.scopes) != set(second.scopes)  # one rank has an annotation of its own
    found = over_time([first, second])
    assert [run.label for run in found.runs] == ["rank 0", "rank 1"]
    assert not found.left_out


def test_two_jobs_copied_together_are_told_apart_also_with_the_same_steps():
    mine, theirs = ranks_of("ddp_host_straggler"), ranks_of("ddp_gpu_straggler")
    assert step_range(mine[0]) == step_range(theirs[0])
    found = over_time([theirs[1], mine[0], theirs[0], mine[1]])
    newest = max((mine, theirs), key=lambda job: job[0].end_ns)
    assert [run.cycles for run in found.runs] == [(newest[0],), (newest[1],)]
    (said,) = found.left_out
    other = theirs if newest is mine else mine
    assert all(cycle.label in said for cycle in other)
    assert "; steps 1 to 8) was left out" in said


def test_the_job_with_more_cycles_is_the_one_that_is_reported():
    first, second = ranks_of("ddp_turns")
    cycles = [later(one, at * HOUR_NS, 100 * at) for at in range(3) for one in (first, second)]
    other = ranks_of("ddp_host_straggler")
    found = over_time([*other, *cycles])
    assert [(run.label, len(run.cycles)) for run in found.runs] == [("rank 0", 3), ("rank 1", 3)]
    assert len(found.left_out) == 1


def test_steps_that_begin_again_are_a_restart_only_where_the_names_go_on():
    first, _ = ranks_of("ddp_turns")
    again = later(first, HOUR_NS)
    assert len(jobs_of([first, again])) == 1
    assert len(jobs_of([first, replace(again, label="other.json")])) == 2
    assert len(jobs_of([first, replace(again, source="other/" + first.label)])) == 2
    goes_on = later(first, HOUR_NS, 100, label="other.json")
    assert len(jobs_of([first, goes_on])) == 1


def test_an_annotation_that_comes_with_a_later_step_is_a_change_within_a_run():
    _, first = ranks_of("ddp_host_straggler")
    bare = replace(first, scopes={name: one for name, one in first.scopes.items() if one.kind == "step"})
    assert set(bare.scopes) < set(first.scopes)
    goes_on = later(first, HOUR_NS, 100)
    assert len(jobs_of([bare, goes_on])) == 1
    assert len(jobs_of([bare, replace(goes_on, process="77")])) == 2
    assert len(jobs_of([bare, later(first, HOUR_NS)])) == 2  # steps begin again
    assert len(jobs_of([bare, replace(goes_on, label="other.json")])) == 2


def test_two_jobs_at_one_time_go_by_folder():
    mine = ranks_of("ddp_turns")
    theirs = [later(one, 1_000_000, source=f"b/{one.label}", process="77") for one in mine]
    assert told([*mine, *theirs]) == [sorted((one.rank, one.label) for one in mine)] * 2
    jobs = jobs_of([theirs[1], mine[0], mine[1], theirs[0]])
    assert [{cycle.source.split("/")[0] for cycle in job} for job in jobs] == [{"b"}, {"traces"}]


@pytest.mark.parametrize(
    ("what", "other"), [("world_size", 8), ("backend", "gloo"), ("group", ("0", "default_pg", 8))]
)
def test_what_all_ranks_share_keeps_jobs_apart(what, other):
    first, second = (replace(one, **{what: "mine"}) for one in ranks_of("ddp_turns"))
    assert len(jobs_of([first, second])) == 1
    assert len(jobs_of([first, replace(second, **{what: other})])) == 2
    assert len(jobs_of([first, replace(second, **{what: None})])) == 1  # it does not say


def test_other_annotations_at_another_time_are_another_job():
    first, second = ranks_of("ddp_host_straggler")
    found = over_time([first, later(second, HOUR_NS)])
    assert [len(found.runs), len(found.left_out)] == [1, 1]


def test_same_rank_twice_at_one_time_is_kept_apart_by_process():
    first, second = ranks_of("ddp_turns")
    twice = later(first, 1_000_000, process="77", label="ddp_turns_rank00.json.xz")
    found = over_time([first, second, twice])
    assert [(run.rank, len(run.cycles)) for run in found.runs] == [(0, 1), (0, 1), (1, 1)]
    assert {run.label for run in found.runs if run.rank == 0} == {
        f"rank 0, process {one.process}" for one in (first, twice)
    }


def test_a_rank_is_taken_from_the_name_where_the_file_does_not_say(tmp_path):
    paths = sorted((Path(__file__).parents[2] / "data" / "over_time" / "sleep").iterdir())
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json.gz").write_bytes(paths[rank].read_bytes())
    cycles = [cycle_of(read(path), str(path)) for path in sorted(tmp_path.iterdir())]
    assert [cycle.rank for cycle in cycles] == [0, 1]


def test_work_that_one_rank_begins_with_the_fourth_of_eight_steps_is_found():
    """Its kernels: 230 a step, of the fourth on 60 matmuls more."""
    found = over_time(ranks_of("ddp_gpu_straggler"))
    assert not found.runs[0].shifts
    (shift,) = found.runs[1].shifts
    (kernels,) = [one for one in shift.drifts if one.key == "kernels"]
    assert [(level.value, level.calls) for level in kernels.levels] == [(230, 3), (290, 5)]
    assert kernels.at[0].step == 4
