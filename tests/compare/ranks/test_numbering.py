"""Steps that a rank numbers otherwise are those that its collectives are of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.compare.ranks.summaries import job

from tracehunch.compare.ranks import compare

MS = 1_000_000


def other_numbers(one, by):
    calls = replace(one.collectives, step=(one.collectives.step + by).astype(np.int32))
    return replace(
        one, collectives=calls, steps=tuple(replace(step, number=step.number + by) for step in one.steps)
    )


def slow_job():
    late = np.zeros((4, 10), dtype=np.int64)
    late[3, 4:] = 2 * MS
    return job(4, 10, late_ns=late, busy=2 * MS + late)


def test_a_rank_that_counts_otherwise_changes_nothing_else():
    plain = slow_job()
    expected = compare(plain)
    for at in (1, 3):
        found = compare([other_numbers(one, 100) if i == at else one for i, one in enumerate(plain)])
        assert found.findings == expected.findings
        assert "from step 4 on" in found.findings[0].summary
        assert f"rank {at}: steps are numbered otherwise (100 higher)" in found.notices[-1].message


def test_steps_that_agree_are_left_alone():
    assert "steps-renumbered" not in [one.code for one in compare(slow_job()).notices]
