"""The made jobs are what they say they are."""

from __future__ import annotations

import gzip
import json

from tests.compare.ranks.made import Straggler, make


def collectives(path):
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    kernels = [e for e in events if e.get("cat") == "kernel" and e["name"].startswith("nccl")]
    return sorted((round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000)) for e in kernels)


def test_a_straggler_makes_all_others_wait_for_as_long_as_it_is_late(tmp_path):
    job = make(tmp_path, 3, straggler=Straggler(rank=1, extra_us=2_000, from_step=3), jitter_us=0)
    late, waits = collectives(job.paths[1]), collectives(job.paths[2])
    assert all(abs(a[1] - b[1]) < 1_000 for a, b in zip(late, waits, strict=True))
    lost = [b[1] - b[0] - (a[1] - a[0]) for a, b in zip(late, waits, strict=True)]
    assert [round(one, -4) for one in lost if one > 10_000] == [2_000_000, 2_000_000]


def test_clocks_are_shifted_by_host(tmp_path):
    job = make(tmp_path, 4, ranks_per_host=2, clock_ns=lambda host: host * 5_000_000)
    ends = [collectives(path)[-1][1] for path in job.paths]
    assert abs(ends[2] - ends[0] - 5_000_000) < 1_000
    assert job.clock_ns == {0: 0, 1: 0, 2: 5_000_000, 3: 5_000_000}
