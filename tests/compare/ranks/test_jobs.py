"""Which files are one job, and what is said of the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.compare.ranks.summaries import EPOCH, collectives, job, rank, shifted, steps

from tracehunch.compare.ranks.jobs import choose, named, numbers

SECOND = 1_000_000_000


def codes(found):
    return [one.code for one in found.notices]


def test_the_ranks_of_one_job():
    found = choose(job(3))
    assert [one.rank for one in found.members] == [0, 1, 2]
    assert (found.world_size, found.missing, codes(found), found.other_jobs) == (3, (), [], ())


def test_missing_ranks_are_named():
    found = choose(job(6)[1:4])
    assert found.missing == (0, 4, 5)
    assert codes(found) == ["missing-ranks"]
    assert "3 ranks of 6 are missing: 0 and 4-5" in found.notices[0].message


def test_the_same_recording_twice_is_taken_once():
    ranks = job(2)
    found = choose([*ranks, replace(ranks[1], source="copy.json", label="copy.json")])
    assert [len(one.files) for one in found.members] == [1, 1]
    assert codes(found) == ["duplicate-file"]


def test_of_two_recordings_of_one_time_the_newer_is_taken():
    ranks = job(2)
    other = replace(shifted(ranks[1], 1_000_000), source="b.json", label="b.json", fingerprint="other")
    found = choose([*ranks, other])
    assert found.members[1].files == (other,)
    assert codes(found) == ["duplicate-rank"]
    assert "b.json is taken" in found.notices[0].message


def cycle(one, number, at_ns):
    moved = shifted(one, at_ns)
    first = number * 10
    later = tuple(replace(step, number=first + i) for i, step in enumerate(moved.steps))
    calls = replace(moved.collectives, step=(moved.collectives.step + first).astype(np.int32))
    return replace(
        moved,
        steps=later,
        collectives=calls,
        source=f"{one.source}.{number}",
        fingerprint=f"{one.source} {number}",
    )


def test_files_of_one_rank_whose_steps_go_on_are_cycles():
    files = [cycle(one, number, number * SECOND) for one in job(2) for number in range(3)]
    found = choose(files)
    assert [one.recordings for one in found.members] == [(0, 1, 2)] * 2
    assert codes(found) == ["several-cycles"]


def test_cycles_are_told_by_their_steps_where_clocks_are_far_apart():
    ranks = job(2)
    files = [cycle(ranks[0], number, number * SECOND) for number in range(3)]
    files += [cycle(ranks[1], number, number * SECOND + 17 * SECOND) for number in range(3) if number != 1]
    found = choose(files)
    assert [one.recordings for one in found.members] == [(0, 1, 2), (0, 2)]
    assert "missing-cycles" in codes(found)


def test_steps_that_begin_again_are_another_job():
    first = job(2)
    later = [shifted(one, 9 * SECOND) for one in job(2, seed=1)]
    second = [replace(one, source=f"b{one.rank}", fingerprint=f"b{one.rank}") for one in later]
    found = choose([*first, *second])
    assert [one.files[0].source for one in found.members] == ["b0", "b1"]  # the newest
    assert codes(found) == ["mixed-jobs"]
    assert found.other_jobs == ("2 ranks of 2 (rank0.json ... rank1.json)",)


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ("/runs/{}/", "2 ranks of 2 (first/: rank0.json ... rank1.json)"),
        ("s3://store/runs/{}/traces/", "2 ranks of 2 (first/traces/: rank0.json ... rank1.json)"),
        ("/first_{}/", "2 ranks of 2 (first_first/: rank0.json ... rank1.json)"),
    ],
)
def test_a_job_that_is_left_out_is_named_with_its_folder(places, said):
    """Many jobs call their files alike."""
    day = 86_400 * 10**9
    first, second = (
        [
            replace(shifted(one, at), source=places.format(name) + one.label, fingerprint=f"{name}{one.rank}")
            for one in job(2)
        ]
        for name, at in (("first", 0), ("second", day))
    )
    assert choose([*first, *second]).other_jobs == (said,)


@pytest.mark.parametrize(
    "change",
    [{"world_size": 4}, {"torch": "2.9.1"}, {"backend": "gloo"}],
    ids=["world size", "torch", "backend"],
)
def test_what_cannot_be_one_job_is_left_out(change):
    ranks = job(3)
    other = replace(job(2)[0], source="z.json", label="z.json", fingerprint="z", **change)
    found = choose([*ranks, other])
    assert len(found.members) == 3
    assert codes(found) == ["mixed-jobs"]


def test_a_file_that_does_not_say_goes_with_the_only_job_there_is():
    ranks = job(3)
    found = choose([*ranks[:2], replace(ranks[2], world_size=None, torch=None, backend=None)])
    assert [one.rank for one in found.members] == [0, 1, 2]
    assert found.world_size == 3


def test_ranks_that_nothing_tells_are_numbered_by_name():
    ranks = [
        replace(one, rank=None, rank_from="order", world_size=None, label=label)
        for one, label in zip(job(3), ("a.json", "b.json", "c.json"), strict=True)
    ]
    named_ranks = [replace(ranks[0], rank=0, rank_from="file name"), *ranks[1:]]
    found = choose(named_ranks)
    assert [(one.rank, one.rank_from) for one in found.members] == [
        (0, "file name"),
        (1, "order"),
        (2, "order"),
    ]
    assert codes(found) == ["rank-by-order"]


def test_a_rank_beyond_the_world_size_is_said():
    calls = collectives(EPOCH + np.arange(4) * SECOND, ranks=(0, 1))
    found = choose([rank(0, calls), rank(7, calls, steps=steps(1))])
    assert "rank-beyond-world-size" in codes(found)


def test_nothing_to_choose_from():
    found = choose([])
    assert (found.members, found.missing) == ((), ())


def test_numbers():
    assert numbers([3, 1, 2, 7]) == "1-3 and 7"
    assert numbers(range(0, 40, 2)) == "0, 2, 4, 6, 8, 10, 12, 14 ... (20 in all)"
    assert (named([4]), named([4, 5])) == ("rank 4", "ranks 4-5")
