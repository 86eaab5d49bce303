"""A file that breaks off says nothing about the healthy ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.compare.ranks.summaries import collectives, job

from tracehunch.compare.ranks import compare
from tracehunch.trace.model import Notice
from tracehunch.verdict import Finding

MS = 1_000_000
CUT = (Notice("truncated", "it ends inside an event", lossy=True),)
FINDING = Finding("hidden-copy", "ProfilerStep", "warning", "high", 5.0, "copies", "Why.", "how", (1,))


def cut(one, **changes):
    return replace(one, notices=CUT, **changes)


@pytest.mark.parametrize("ranks", [2, 4])
def test_what_a_cut_file_lacks_is_not_odd_of_the_others(ranks):
    made = [replace(one, findings=(FINDING,), facts={"f": {"kernels": 7}}) for one in job(ranks)]
    made[-1] = cut(made[-1], findings=(), facts={"f": {"kernels": 0}})
    found = compare(made)
    assert found.odd == ()
    assert not [one for one in found.findings if "only" in one.summary]
    assert "hidden-copy" in [one.id for one in found.findings]
    assert [row.is_cut for row in found.rows] == [False] * (ranks - 1) + [True]


def test_a_cut_rank_is_nobodys_peer():
    late = np.zeros((2, 10), dtype=np.int64)
    late[1] = 2 * MS
    ranks = job(2, 10, late_ns=late, busy=2 * MS + late)
    assert "straggler" in [one.id for one in compare(ranks).findings]
    assert "straggler" not in [one.id for one in compare([cut(ranks[0]), ranks[1]]).findings]


def test_a_file_that_ends_before_its_gpu_events_was_not_recorded_wrongly():
    ranks = job(2)
    none = collectives([], ranks=(0, 1))
    blind = replace(ranks[1], breakdown=(), collectives=none)
    said = {one.code: one.message for one in compare([ranks[0], cut(blind)]).notices}
    assert "rank 1: the file is cut before its GPU events" in said["cut-before-gpu"]
    assert "no-gpu-activity" not in said
    said = {one.code: one.message for one in compare([ranks[0], blind]).notices}
    assert "record with ProfilerActivity.CUDA" in said["no-gpu-activity"]
    assert "cut-before-gpu" not in said


def test_what_a_cut_file_lacks_does_not_lower_the_mean():
    whole = job(4)
    lost = replace(whole[3].breakdown[0], exposed_communication_ns=0)

    def said(ranks):
        return next(one for one in compare(ranks).findings if one.id == "exposed-communication").summary

    less = replace(whole[3], breakdown=(lost,))
    before, after = said([*whole[:3], less]), said([*whole[:3], cut(less)])
    assert "on average over 4 ranks" in before
    assert "on average over 3 ranks" in after
    shown = [float(one.partition(" us")[0]) for one in (before, after)]
    assert shown == pytest.approx([600, 800], rel=0.02)  # of four collectives of 200 us a step
    assert "on the one rank whose file is whole" in said([whole[0], *map(cut, whole[1:])])
