"""What files say of their rank where it cannot be, and what is taken in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.compare.ranks.summaries import job, shifted

from tracehunch.compare.ranks.jobs import choose
from tracehunch.trace.model import Notice

MS = 1_000_000


def codes(found):
    return [one.code for one in found.notices]


def ranks_of(found):
    return [one.rank for one in found.members]


@pytest.mark.parametrize("world", [0, 10**15])
def test_a_world_size_that_cannot_be_is_not_believed(world):
    found = choose([replace(one, world_size=world) for one in job(3)])
    assert (found.world_size, found.missing, ranks_of(found)) == (None, (), [0, 1, 2])
    assert codes(found) == ["rank-doubted"]


def test_of_a_rank_that_cannot_be_the_name_tells():
    found = choose([replace(one, rank=one.rank + 10**12) for one in job(3)])
    assert ranks_of(found) == [0, 1, 2]
    assert {one.rank_from for one in found.members} == {"file name"}


def test_names_are_believed_where_all_files_say_the_same_rank():
    conflict = (Notice("rank-conflict", "the content is believed", lossy=True),)
    found = choose([replace(one, rank=0, notices=conflict) for one in job(4)])
    assert ranks_of(found) == [0, 1, 2, 3]
    assert codes(found) == ["rank-conflict"]
    assert not any(file.notices for one in found.members for file in one.files)


def unnamed(ranks, labels, **changes):
    return [
        replace(one, label=label, source=f"job/{label}", **changes)
        for one, label in zip(ranks, labels, strict=True)
    ]


def test_processes_of_other_gpus_are_other_ranks_whatever_they_say():
    files = unnamed(job(3), ("x.json", "y.json", "z.json"), rank=0)
    apart = [
        replace(one, breakdown=tuple(replace(part, device=gpu) for part in one.breakdown))
        for gpu, one in enumerate(files)
    ]
    assert ranks_of(choose(apart)) == [0, 1, 2]
    assert ranks_of(choose(files)) == [0]  # the same GPU: the same rank, recorded thrice


def test_ranks_are_numbered_as_a_person_counts():
    nothing = {"rank": None, "rank_from": "order", "world_size": None}
    files = unnamed(job(12), [f"host_a{i}b{i}.json" for i in range(12)], **nothing)
    assert [one.files[0].label for one in choose(files).members][1:3] == ["host_a1b1.json", "host_a2b2.json"]


def test_the_one_number_that_tells_names_apart_is_the_rank():
    nothing = {"rank": None, "rank_from": "order"}
    found = choose(unnamed(job(8)[3:6], ["r003.json", "r004.json", "r005.json"], **nothing))
    assert (ranks_of(found), found.missing) == ([3, 4, 5], (0, 1, 2, 6, 7))
    assert "rank-by-order" not in codes(found)
    processes = choose(unnamed(job(2), ["host_649.json", "host_650.json"], **nothing))
    assert ranks_of(processes) == [0, 1]


def test_ranks_with_other_versions_of_pytorch_are_one_job():
    ranks = job(4)
    found = choose([*ranks[:3], replace(ranks[3], torch="2.10.0")])
    assert (ranks_of(found), found.missing) == ([0, 1, 2, 3], ())
    assert "2.10.0 on 1 rank and 2.11.0 on 3 ranks" in found.notices[0].message
    later = shifted(replace(ranks[3], torch="2.10.0"), 10_000 * MS)
    assert ranks_of(choose([*ranks[:3], later])) == [0, 1, 2]


@pytest.mark.parametrize("where", ["b/rank{}.json", "a/other-rank{}.json"])
def test_two_jobs_of_one_time_are_kept_apart(where):
    first = [replace(one, source=f"a/rank{one.rank}.json") for one in job(3)]
    names = [where.format(one.rank) for one in first]
    second = [
        replace(shifted(one, MS), source=name, label=name.split("/")[1], fingerprint=name)
        for one, name in zip(job(3, seed=1), names, strict=True)
    ]
    found = choose([first[0], second[1], first[2], second[0], first[1], second[2]])
    assert [one.files[0].source for one in found.members] == names  # the newer
    assert codes(found) == ["mixed-jobs"]
