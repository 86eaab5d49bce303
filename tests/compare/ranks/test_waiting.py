"""Arrivals and waiting, against counts over the raw JSON of two recorded GPUs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.compare.ranks.recorded import raw
from tests.compare.ranks.summaries import EPOCH, collectives, job, rank

from tracehunch.compare.ranks import compare


def calls(name):
    """Collectives that say what they moved, as (microseconds, microseconds), in order."""
    events = raw(name)["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel" and "In msg nelems" in e.get("args", {})]
    return sorted((e["ts"], e["ts"] + e["dur"]) for e in kernels)


@pytest.mark.parametrize("name", ["ddp", "tp"])
def test_skews_and_waits_are_those_of_the_raw_stamps(examined, name):
    first, second = (calls(f"h200/ranks/{name}/rank{i}") for i in (0, 1))
    found = compare([examined(f"h200/ranks/{name}/rank{i}") for i in (1, 0)])
    skew = [abs(a[0] - b[0]) for a, b in zip(first, second, strict=True)]
    assert [one.skew_ns / 1e3 for one in found.matched] == pytest.approx(skew, abs=0.01)
    late = [int(b[0] > a[0]) for a, b in zip(first, second, strict=True)]
    assert [one.last_rank for one in found.matched] == late
    waited = sum(max(b[0] - a[0], 0) for a, b in zip(first, second, strict=True))
    assert found.rows[0].waited_ns / 1e3 == pytest.approx(waited, abs=1)
    assert found.rows[1].made_wait_ns == found.rows[0].waited_ns


def test_what_only_one_rank_recorded_is_counted(examined):
    """Rank 1 has three collectives at the front that rank 0 lacks."""
    assert compare([examined(f"h200/ranks/ddp/rank{i}") for i in (0, 1)]).unmatched == 3


def test_waiting_is_laid_to_the_last_and_never_longer_than_the_kernel():
    late = [[0, 0], [0, 0], [900_000, 0]]
    found = compare(job(3, 2, late_ns=late, jitter=0))
    worst = max(found.matched, key=lambda one: one.skew_ns)
    assert (worst.last_rank, worst.waited_ns[2]) == (2, 0)
    assert worst.waited_ns[0] == worst.last_start_ns - (worst.last_start_ns - worst.waited_ns[0])
    assert abs(worst.waited_ns[0] - 900_000) < 5_000
    rows = {row.rank: row for row in found.rows}
    assert rows[2].made_wait_ns == pytest.approx(1_800_000, abs=20_000)
    assert rows[2].waited_ns < 20_000


def test_a_call_keeps_its_ranks_rows_and_size():
    found = compare(job(3, 2))
    one = found.matched[5]
    assert dict(one.rows) == {0: 5, 1: 5, 2: 5}
    assert (one.kind, one.group_size, one.bytes, one.step, one.dtype) == (
        "allreduce",
        3,
        1 << 25,
        1,
        "BFloat16",
    )
    assert set(one.exposed_ns) == {0, 1, 2}
    with pytest.raises(KeyError):
        one.rows[3]


def test_without_collectives_nobody_waits():
    empty = collectives(np.zeros(0, dtype=np.int64), ranks=())
    found = compare([rank(0, empty), rank(1, empty)])
    assert [(row.waited_ns, row.made_wait_ns) for row in found.rows] == [(None, None)] * 2
    assert [one.code for one in found.notices] == ["no-collectives"]


def test_recordings_of_other_times_are_not_matched():
    ends = EPOCH + np.cumsum(np.random.default_rng(0).integers(800_000, 1_200_000, 20))
    other = EPOCH + 10**12 + np.cumsum(np.random.default_rng(1).integers(800_000, 1_200_000, 20))
    step = np.arange(20) // 5
    found = compare([rank(i, collectives(e, ranks=(0, 1), step=step)) for i, e in enumerate((ends, other))])
    assert (found.matched, found.unmatched) == ((), 40)
    assert "recorded-apart" in [one.code for one in found.notices]
