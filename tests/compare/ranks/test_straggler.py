"""Who is named for making others wait, and who is not."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.compare.ranks.made import Straggler, make
from tests.compare.ranks.recorded import DATA
from tests.compare.ranks.summaries import job

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.examine import examine
from tracehunch.verdict import Finding

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


def straggler(examined):
    found = [one for one in compare(examined).findings if one.id == "straggler"]
    return found[0] if found else None


@cache
def recorded(name):
    return tuple(examine(DATA / "h200_ranks" / name / f"rank{i}.json.xz") for i in (0, 1))


def test_extra_products_on_one_gpu_from_the_fourth_step_on():
    """Kernels under aten::mm, launched in steps 4-8, take 59.05 ms in one file, 8.114 in the other."""
    found = straggler(recorded("ddp_gpu_straggler"))
    assert found.severity == "warning"
    assert "rank 1 makes the others wait" in found.summary
    assert "from step 4 on: aten::mm takes 11.81 ms on the GPU, 1.623 ms on the other rank" in found.summary


def test_no_more_is_at_stake_than_the_others_leave_of_a_step():
    found = straggler(recorded("ddp_gpu_straggler"))
    assert found.time_at_stake_us == pytest.approx(20_502 - 20_077, abs=3)
    assert "Of a step of 20.50 ms the other ranks need 20.08 ms themselves" in found.cause
    ranks = job(**of_steps(slice(None)), host=10 * MS)  # the whole step
    found = straggler(ranks)
    assert "rank 2 makes" in found.summary
    assert (found.severity, found.time_at_stake_us) == ("note", pytest.approx(0, abs=50))


def test_a_host_that_sleeps_in_each_step():
    found = straggler(recorded("ddp_host_straggler"))
    assert (found.severity, found.confidence) == ("warning", "high")
    assert "throughout: load_batch takes 20.30 ms on the host, nothing on the other rank" in found.summary
    assert 20_000 < found.time_at_stake_us < 27_000


def test_no_straggler_where_ranks_take_turns():
    """Though rank 1 waits 154 ms for rank 0, whose host is behind, and rank 0 only 6 ms for rank 1."""
    assert straggler(recorded("ddp_turns")) is None


def test_a_rank_that_runs_ahead_is_no_reason_to_warn(examined):
    for name in ("ddp", "tp"):
        found = straggler([examined(f"h200/ranks/{name}/rank{i}") for i in (0, 1)])
        assert found is None or (found.severity, found.confidence) == ("note", "low")


def of_steps(which, number=10, ranks=4, extra=2 * MS):
    """Rank 2 is late in some steps: how late ranks are, and what their GPUs need."""
    late = np.zeros((ranks, number), dtype=np.int64)
    late[2, which] = extra
    return {"ranks": ranks, "number": number, "late_ns": late, "busy": 2 * MS + late}


@pytest.mark.parametrize(
    ("which", "when"),
    [
        (slice(None), "throughout"),
        (slice(6, None), "from step 6 on"),
        (slice(4, None, 2), "from step 4 on, in every second step"),
        ([1, 2, 5, 9], "from step 1 on, in 4 of 9 steps"),
    ],
)
def test_since_when_and_how_much(which, when):
    found = straggler(job(**of_steps(which)))
    assert f", {when}: its GPU needs" in found.summary
    assert "rank 2 makes" in found.summary
    assert found.time_at_stake_us == pytest.approx(2_000, rel=0.03)
    assert found.severity == "warning"
    assert found.evidence


def test_once_is_not_a_habit():
    assert straggler(job(**of_steps([5]))) is None


def test_ranks_that_take_turns():
    late = np.zeros((4, 12), dtype=np.int64)
    late[np.arange(12) % 4, np.arange(12)] = 2 * MS
    assert straggler(job(4, 12, late_ns=late, busy=2 * MS + late)) is None


@pytest.mark.parametrize("seed", range(5))
def test_noise(seed):
    noise = np.random.default_rng(seed)
    late = noise.integers(0, 100_000, (4, 10))
    host = noise.normal(5 * MS, 300_000, (4, 10)).astype(np.int64)
    assert straggler(job(4, 10, late_ns=late, host=host, seed=seed)) is None


def test_more_work_for_which_nobody_waits():
    assert straggler(job(4, busy=[[2 * MS], [2 * MS], [4 * MS], [2 * MS]])) is None


def test_two_ranks_of_a_slow_node_are_named_together():
    late = np.zeros((8, 10), dtype=np.int64)
    late[4:6] = 2 * MS
    found = straggler(job(8, 10, late_ns=late, busy=2 * MS + late))
    assert found.summary.startswith("ranks 4-5 make the others wait")


def test_stages_of_a_pipeline_wait_by_design():
    ranks = job(**of_steps(slice(None)))
    sends = [replace(one, collectives=replace(one.collectives, kinds=("send",))) for one in ranks]
    assert straggler(sends) is None
    assert "pipeline-stages" in [one.code for one in compare(sends).notices]


def test_of_a_slow_host_the_op_is_named():
    late = np.zeros((4, 10), dtype=np.int64)
    late[1] = 3 * MS
    ranks = job(4, 10, late_ns=late, host=3 * MS + late)
    ranks = [
        replace(one, host_time_us_by_op={"aten::mm": 900.0, "decode": 30_000.0 * (one.rank == 1)})
        for one in ranks
    ]
    found = straggler(ranks)
    assert "rank 1" in found.summary
    assert "decode takes 3.000 ms on the host, nothing on the median rank" in found.summary


def test_a_slow_host_of_a_pair_is_a_note_only_in_many_steps_where_nothing_in_particular_is_slow():
    late = np.zeros((2, 10), dtype=np.int64)
    late[1] = 2 * MS
    assert straggler(job(2, 10, late_ns=late, host=5 * MS + late)) is None
    late = np.repeat(late, 2, axis=1)
    found = straggler(job(2, 20, late_ns=late, host=5 * MS + late))
    assert (found.severity, found.confidence) == ("note", "low")


def test_without_steps_only_a_reason_of_its_own_makes_a_straggler():
    ranks = recorded("ddp_host_straggler")

    def without(one):
        calls = one.collectives
        return replace(one, steps=(), collectives=replace(calls, step=np.full_like(calls.step, -1)))

    found = straggler([without(one) for one in ranks])
    assert (found.scope, found.severity) == ("whole", "warning")
    assert "load_batch takes 162" in found.summary
    assert straggler([without(one) for one in recorded("ddp_turns")]) is None


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("job")


@pytest.mark.parametrize(("how", "what"), [("gpu", "aten::mm"), ("host", "nccl:all_reduce")])
def test_planted_in_files_with_hosts_whose_clocks_are_apart(files, how, what):
    made = make(
        files / how, 4, repeat=2, ranks_per_host=2, clock_ns=lambda host: host * 7_000_000_000,
        straggler=Straggler(2, 2_000, how, from_step=4),
    )  # fmt: skip
    found = compare([examine(path) for path in made.paths])
    one = next(finding for finding in found.findings if finding.id == "straggler")
    assert "rank 2 makes the others wait 2.00" in one.summary
    assert f"from step 4 on: {what} takes" in one.summary
    assert one.time_at_stake_us == pytest.approx(2_000, rel=0.02)
    assert [clock.offset_ns for clock in found.clocks] == pytest.approx([0, 0, 7e9, 7e9], abs=5_000)
    assert len(found.matched) == made.collectives


def slower(extra_ns, where, ranks=8, number=10, **changes):
    """A rank that needs more, of its GPU or host, in all steps; the time by op in ``changes``."""
    late = np.zeros((ranks, number), dtype=np.int64)
    late[2] = extra_ns
    return [
        replace(one, **{key: by_rank[one.rank == 2] for key, by_rank in changes.items()})
        for one in job(ranks, number, late_ns=late, **{where: 3 * MS + late})
    ]


OPS = {"aten::mm": 20_000.0, "aten::bmm": 6_000.0, "aten::gelu": 4_000.0}


def times(factor):
    return {op: us * factor for op, us in OPS.items()}


def test_no_op_is_blamed_where_all_are_slower_alike():
    found = straggler(slower(MS, "busy", gpu_time_us_by_op=(OPS, times(4 / 3))))
    assert "its GPU needs 1.000 ms more for the same ops, 1.33x what they take on the median" in found.summary
    assert found.summary.endswith("most in aten::mm (+666.7 us)")


def test_an_op_is_blamed_where_the_others_are_as_quick_as_ever():
    found = straggler(slower(MS, "busy", gpu_time_us_by_op=(OPS, OPS | {"aten::bmm": 16_000.0})))
    assert "aten::bmm takes 1.600 ms on the GPU, 600.0 us on the median rank" in found.summary


def test_a_host_that_is_slower_in_all_stands_out_among_hosts_that_are_alike():
    found = straggler(slower(MS, "host", host_time_us_by_op=(OPS, times(4 / 3))))
    assert (found.severity, found.confidence) == ("warning", "high")
    assert "its host needs 1.000 ms more for the same work, spread over all of it" in found.summary


def test_of_hosts_that_all_differ_the_slowest_is_a_note():
    late = np.zeros((8, 10), dtype=np.int64)
    late[2] = MS
    host = 3 * MS + late + np.linspace(0, 0.6 * MS, 8).astype(np.int64)[:, None]
    found = straggler(job(8, 10, late_ns=late, host=host))
    assert found is None or (found.severity, found.confidence) == ("note", "low")


def waits_first(one, wait_ns):
    """The same rank, but in the first of the two collectives of each step it waits so long."""
    calls = one.collectives
    wait = np.where(np.arange(len(calls)) % 2 == 0, wait_ns, 0)
    return replace(
        one,
        collectives=replace(calls, start_ns=calls.start_ns - wait, exposed_ns=calls.exposed_ns + wait),
        steps=tuple(replace(step, gpu_busy_ns=step.gpu_busy_ns + wait_ns) for step in one.steps),
    )


def test_two_ranks_that_are_late_for_other_reasons_are_two_findings():
    late = np.zeros((8, 10), dtype=np.int64)
    late[5] = 2 * MS
    ranks = job(8, 10, late_ns=late, busy=2 * MS + late, host=3 * MS + late[::-1], each=2)
    ranks = [waits_first(one, (2 * MS if one.rank != 2 else 0)) for one in ranks]  # for rank 2
    found = [one for one in compare(ranks).findings if one.id == "straggler"]
    assert sorted(one.subject for one in found) == ["rank 2", "rank 5"]


def test_a_rank_whose_peer_is_missing_is_not_blamed_for_it(tmp_path):
    """Rank 2 waits in a group with rank 3, whose file is not there: how long, its own file cannot tell."""
    made = make(
        tmp_path, 8, repeat=2, straggler=Straggler(3, 3_000),
        groups=lambda rank: (rank // 2 * 2, rank // 2 * 2 + 1),
    )  # fmt: skip
    ranks = [examine(path) for path in made.paths]
    assert straggler(ranks).subject == "rank 3"
    assert straggler([one for one in ranks if one.rank != 3]) is None


def test_the_share_is_of_the_steps_in_which_it_was_late(tmp_path):
    made = make(tmp_path, 4, repeat=4, straggler=Straggler(2, 10_000, from_step=4, every=3))
    found = straggler([examine(path) for path in made.paths])
    assert "in every third step" in found.summary
    ratio = int(found.summary.partition("% of the time")[0].rpartition(", ")[2])
    assert 70 < ratio < 95  # 10 ms of 10 and the 2.4 ms of any other step


def test_a_host_that_was_held_up_once_is_not_late_for_that_in_every_step():
    """As where a file breaks off, and the GPU has nothing to do from there on."""
    late = np.zeros((2, 10), dtype=np.int64)
    late[1] = 2 * MS
    stall = Finding(
        id="host-stall", scope="ProfilerStep", severity="warning", confidence="high", time_at_stake_us=9e3,
        summary="held up", cause="", fix="", evidence=(1,),
    )  # fmt: skip

    def held_up(one, times):
        part = replace(one.breakdown[0], idle_ns={"stall": 20 * MS})
        return replace(one, breakdown=(part,), findings=(replace(stall, evidence=tuple(range(times))),))

    ranks = job(2, 10, late_ns=late, host=5 * MS + late)
    assert straggler([ranks[0], held_up(ranks[1], 1)]) is None
    found = straggler([ranks[0], held_up(ranks[1], 10)])
    assert found.severity == "warning"
    assert "its GPU is idle for 2.000 ms for host code outside PyTorch, nothing on the other" in found.summary


def test_one_step_as_long_as_a_step_is_a_note():
    found = straggler(job(**of_steps([6], extra=12 * MS)))
    assert (found.subject, found.severity, found.confidence) == ("rank 2", "note", "low")
    assert "in step 6 only" in found.summary
    assert straggler(job(**of_steps([6], extra=4 * MS))) is None


@pytest.mark.parametrize(("ranks", "extra"), [(8, MS), (8, 2 * MS), (4, 2 * MS)])
def test_the_slower_one_of_two_hosts_is_named(ranks, extra):
    late = np.zeros((ranks, 10), dtype=np.int64)
    late[ranks // 2 :] = extra
    noise = np.random.default_rng(1).integers(0, MS // 20, late.shape)
    found = straggler(job(ranks, 10, late_ns=late, busy=2 * MS + late + noise))
    assert found.severity == "warning"
    assert f"ranks {ranks // 2}-{ranks - 1} make the others wait" in found.summary
    assert found.time_at_stake_us == pytest.approx(extra / 1000, rel=0.1)


def test_ranks_that_all_need_something_else_are_not_halves():
    for ranks in (4, 8):
        needs = np.linspace(0, 2 * MS, ranks).astype(np.int64)[:, None] + np.zeros((1, 10), dtype=np.int64)
        assert straggler(job(ranks, 10, late_ns=needs, busy=2 * MS + needs)) is None


def test_ranks_that_meet_in_every_fourth_step_wait_there_for_all_four():
    """As where gradients are accumulated: 2 ms more a step are 8 ms that the others wait in the fourth."""
    late, extra = np.zeros((4, 16), dtype=np.int64), np.zeros((4, 16), dtype=np.int64)
    late[2, 3::4], extra[2] = 8 * MS, 2 * MS
    ranks = []
    for one in job(4, 16, late_ns=late, busy=2 * MS + extra):
        calls = one.collectives
        kept = np.flatnonzero(calls.step % 4 == 3)
        columns = {
            f.name: v[kept] for f in fields(calls) if isinstance(v := getattr(calls, f.name), np.ndarray)
        }
        ranks.append(replace(one, collectives=replace(calls, **columns | {"number": np.arange(kept.size)})))
    found = straggler(ranks)
    assert found.time_at_stake_us == pytest.approx(2_000, rel=0.02)
    assert "rank 2 makes the others wait 2.0" in found.summary
    assert "20% of the time), throughout" in found.summary
