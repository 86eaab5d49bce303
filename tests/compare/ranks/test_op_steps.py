"""Times of ops by step, against a count over the raw JSON."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tests.compare.ranks.recorded import DATA
from tests.compare.ranks.summaries import job

from tracehunch.compare.ranks.examine import examine
from tracehunch.compare.ranks.jobs import Member
from tracehunch.compare.ranks.model import OpSteps
from tracehunch.compare.ranks.per_step import Late


def events(path):
    opened = lzma.open if path.suffix == ".xz" else gzip.open
    with opened(path) as file:
        return json.load(file)["traceEvents"]


def steps(recorded):
    return {
        int(e["name"].partition("#")[2]): (e["ts"], e["ts"] + e["dur"])
        for e in recorded
        if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep")
    }


def by_step(table, op):
    return table.us[table.ops.index(op)].tolist()


def test_an_annotation_on_the_host():
    path = DATA / "h200_ranks/ddp_host_straggler/rank1.json.xz"
    one, recorded = examine(path), events(path)
    count = Counter()
    for e in recorded:
        if e.get("name") == "load_batch" and e.get("cat") == "user_annotation":
            count.update({n: e["dur"] for n, (a, b) in steps(recorded).items() if a <= e["ts"] < b})
    assert by_step(one.host_steps, "load_batch") == pytest.approx([count[s.number] for s in one.steps])
    assert len(pickle.dumps(one.host_steps)) + len(pickle.dumps(one.gpu_steps)) < 8_000


def test_kernels_under_an_op():
    path = DATA / "h200_ranks/ddp_gpu_straggler/rank1.json.xz"
    one, recorded = examine(path), events(path)
    launches = {
        e["args"]["correlation"]: e
        for e in recorded
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and e["args"].get("correlation")
    }
    ops = [e for e in recorded if e.get("cat") == "cpu_op" and e["name"] == "aten::mm"]
    count = Counter()
    for kernel in (e for e in recorded if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")):
        launch = launches.get(kernel["args"]["correlation"])
        if launch and any(
            op["tid"] == launch["tid"] and op["ts"] <= launch["ts"] <= op["ts"] + op["dur"] for op in ops
        ):
            number = next(n for n, (a, b) in steps(recorded).items() if a <= launch["ts"] < b)
            count[number] += kernel["dur"]
    assert by_step(one.gpu_steps, "aten::mm") == pytest.approx([count[s.number] for s in one.steps])


def test_mean_of_the_late_steps_and_of_all_where_the_table_leaves_an_op_out():
    table = OpSteps(("a",), np.array([[1, 1, 1, 9, 11]], dtype=np.float32))
    first = replace(job(1, 5)[0], host_steps=table, host_time_us_by_op={"a": 23.0, "b": 10.0})
    other = replace(first, steps=first.steps[:2], host_steps=OpSteps(("a",), table.us[:, 3:]))
    member = Member(7, "file name", (first, other), (0, 1))

    def mean(units, ahead):
        return Late(frozenset(units), {7: ahead}).mean(
            lambda one: one.host_time_us_by_op, lambda one: one.host_steps, member
        )

    assert mean({(0, 3), (0, 4)}, 0) == {"a": 10, "b": 2}
    assert mean({(0, 2), (0, 3)}, 1) == {"a": 10, "b": 2}
    assert mean({(0, 0), (1, 1)}, 0) == {"a": 6, "b": (2 + 5) / 2}
    assert mean({(2, 0)}, 0) is None
