"""What one file of one rank gives, and that it keeps nothing of the trace."""

from __future__ import annotations

import gc
import gzip
import json
import pickle
import shutil
from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest
from tests.compare.ranks.recorded import path_of, raw

from tracehunch.compare.ranks.examine import examine
from tracehunch.compare.ranks.model import Collectives, Group
from tracehunch.errors import ReadError
from tracehunch.judge import examine as look_at
from tracehunch.report.json_report import look_object
from tracehunch.trace import read
from tracehunch.trace.model import Trace

DDP = "h200/ranks/ddp/rank0"
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
MEASURED = ("seconds", "peak_bytes")
WHERE = ("source", "label", "file_bytes")


def plain(summary, *left_out):
    """Make a summary comparable: arrays as lists."""
    found = {}
    for one in fields(summary):
        value = getattr(summary, one.name)
        if isinstance(value, Collectives):
            columns = (getattr(value, column.name) for column in fields(value))
            value = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns]
        found[one.name] = value
    return {name: value for name, value in found.items() if name not in (*MEASURED, *left_out)}


def test_a_header_says_who_the_rank_is(examined):
    one = examined(DDP)
    assert (one.label, one.file_bytes) == ("rank0.json.gz", path_of(DDP).stat().st_size)
    assert (one.rank, one.rank_from, one.world_size, one.backend) == (0, "distributedInfo", 2, "nccl")
    assert one.groups == (Group("0", "default_pg", (0, 1), 2),)
    assert (one.devices, one.host) == (("NVIDIA H200",), None)
    assert one.trace_id == raw(DDP)["trace_id"]
    assert one.events == len(raw(DDP)["traceEvents"])


def test_stamps_are_absolute(examined):
    document, one = raw(DDP), examined(DDP)
    steps = [e for e in document["traceEvents"] if e.get("name", "").startswith("ProfilerStep#")]
    assert [step.number for step in one.steps] == [2, 3, 4]
    for step, event in zip(one.steps, sorted(steps, key=lambda e: e["ts"]), strict=True):
        begin = document["baseTimeNanoseconds"] + round(event["ts"] * 1000)
        assert abs(step.start_ns - begin) < 1_000  # a float of microseconds holds no nanoseconds
        assert step.end_ns - step.start_ns == pytest.approx(event["dur"] * 1000, abs=1)
    assert one.start_ns == one.steps[0].start_ns
    assert one.end_ns > one.steps[-1].end_ns


def test_a_step_keeps_the_gpu_busy_with_what_it_launched(examined):
    document, one = raw(DDP), examined(DDP)
    events = document["traceEvents"]
    calls = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    launched = {e["args"]["correlation"]: e["ts"] for e in calls if "correlation" in e["args"]}
    step = next(e for e in events if e.get("name") == "ProfilerStep#3" and e["cat"] == "user_annotation")
    begin, end = step["ts"], step["ts"] + step["dur"]
    activities = [e for e in events if e.get("cat") in GPU]
    mine = sorted(
        (e["ts"], e["ts"] + e["dur"]) for e in activities if begin <= launched[e["args"]["correlation"]] < end
    )
    busy, reach = 0.0, 0.0
    for start, end in mine:
        busy += max(end - max(start, reach), 0)
        reach = max(reach, end)
    assert one.steps[1].gpu_busy_ns == pytest.approx(busy * 1000, abs=len(mine))


def test_facts_are_those_of_the_json_of_look(examined):
    report = look_object(look_at(read(path_of(DDP))))
    expected = {
        scope["name"]: scope["facts"]
        for scope in report["scopes"]
        if scope["kind"] in ("step", "annotation", "whole")
    }
    found = {
        name: {key: list(value) if isinstance(value, tuple) else value for key, value in facts.items()}
        for name, facts in examined(DDP).facts.items()
    }
    assert found == expected
    assert {"train_step", "ProfilerStep", "whole"} <= found.keys()


def test_gpu_time_by_op_is_all_of_it(examined):
    activities = [e for e in raw(DDP)["traceEvents"] if e.get("cat") in GPU]
    by_op = examined(DDP).gpu_time_us_by_op
    assert sum(by_op.values()) == pytest.approx(sum(e["dur"] for e in activities), abs=0.1)
    comms = sum(e["dur"] for e in activities if e["name"].startswith("nccl"))
    assert by_op["record_param_comms"] == pytest.approx(comms, abs=0.1)
    assert all(first >= second for first, second in pairwise(by_op.values()))


def test_findings_are_those_of_look(examined):
    expected = look_at(read(path_of(DDP))).checked.findings
    found = examined(DDP).findings
    assert [(one.id, one.scope, one.summary) for one in found] == [
        (one.id, one.scope, one.summary) for one in expected
    ]
    assert all(len(one.evidence) <= 20 for one in found)


def test_a_trace_that_was_read_already_gives_the_same(examined):
    again = examine(path_of(DDP), read_as=read(path_of(DDP)))
    assert plain(again) == plain(examined(DDP))


def traces():
    """All there are; their type is compared: to ask any object for its class may run code of its own."""
    return [one for one in gc.get_objects() if type(one) is Trace]


def test_little_is_kept_and_nothing_of_the_trace():
    gc.collect()
    before = traces()
    one = examine(path_of(DDP))
    gc.collect()
    assert all(any(kept is other for other in before) for kept in traces())
    sent = pickle.dumps(one)
    assert len(sent) < 50_000
    assert plain(pickle.loads(sent)) == plain(one)  # noqa: S301  # what was dumped above


def test_the_same_recording_is_known_under_another_name_and_packed_otherwise(examined, tmp_path):
    copied, unpacked = tmp_path / "other_rank7.json.gz", tmp_path / "plain.json"
    shutil.copy(path_of(DDP), copied)
    unpacked.write_bytes(gzip.decompress(path_of(DDP).read_bytes()))
    prints = {examine(path).fingerprint for path in (copied, unpacked)}
    assert prints == {examined(DDP).fingerprint}
    assert examined("h200/ranks/ddp/rank1").fingerprint not in prints


def test_another_duration_is_another_recording(examined, changed):
    def longer(document):
        event = next(e for e in document["traceEvents"] if e.get("cat") == "kernel")
        event["dur"] = round(event["dur"] + 0.001, 3)

    assert changed("h200/ranks/tp/rank0", longer).fingerprint != examined("h200/ranks/tp/rank0").fingerprint
    assert (
        changed("h200/ranks/tp/rank0", lambda _: None).fingerprint
        == examined("h200/ranks/tp/rank0").fingerprint
    )


def test_a_rank_is_told_by_the_header_before_the_name_and_by_nothing_else(changed):
    nobody = lambda document: document.pop("distributedInfo")  # noqa: E731  # a header, twice
    named = changed("h200/ranks/tp/rank0", nobody, "step_rank5.json")
    assert (named.rank, named.rank_from, named.world_size, named.groups) == (5, "file name", None, ())
    unnamed = changed("h200/ranks/tp/rank0", nobody, "trace.json")
    assert (unnamed.rank, unnamed.rank_from) == (None, "order")
    both = changed("h200/ranks/tp/rank1", lambda _: None, "step_rank5.json")
    assert (both.rank, both.rank_from) == (1, "distributedInfo")


@pytest.mark.parametrize(
    ("file", "host"),
    [
        ("node-3_{pid}.1796051797788218880.pt.trace.json", "node-3"),
        ("gpu_box_01_{pid}.1796051797788218880.pt.trace.json", "gpu_box_01"),
        ("worker_0.1796051797788218880.pt.trace.json", None),  # the name that a user gave: no process
        ("node-3_{pid}.json", None),
    ],
)
def test_a_host_is_told_by_the_handlers_file_name(changed, file, host):
    name = "h200/ranks/tp/rank0"
    pid = next(e["pid"] for e in raw(name)["traceEvents"] if e.get("cat") == "cpu_op")
    assert changed(name, lambda _: None, file.format(pid=pid)).host == host


def test_a_host_in_the_header_goes_before_the_name(changed):
    def stated(document):
        document["host_name"] = "n17"

    assert changed("h200/ranks/tp/rank0", stated).host == "n17"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_without_gpu_has_steps_and_no_breakdown_and_says_so(examined, rank):
    one = examined(f"cpu_gloo/rank{rank}")
    assert (one.rank, one.world_size, one.backend) == (rank, 2, "gloo")
    assert (one.breakdown, len(one.collectives), one.devices) == ((), 0, ())
    assert [step.number for step in one.steps] == [2, 3]
    assert {step.gpu_busy_ns for step in one.steps} == {None}
    assert one.facts["ProfilerStep"]["wall_time_us"] > 0
    assert "cpu-only" in [notice.code for notice in one.notices]


@pytest.mark.parametrize(
    "info",
    [
        [],
        "x",
        {"rank": -1, "world_size": "many", "pg_config": {"0": None}},
        {"rank": 1.5, "pg_config": [{"pg_name": "0", "ranks": "all"}, 3, {"pg_name": None, "ranks": [[]]}]},
        {"rank": [0], "backend": 3, "pg_config": "[]"},
    ],
)
def test_an_odd_header_does_no_harm(changed, info):
    def odd(document):
        document["distributedInfo"] = info
        document["baseTimeNanoseconds"] = 2**63 - 1

    one = changed("h200/ranks/tp/rank0", odd, "trace.json")
    assert (one.rank, one.rank_from, one.world_size) == (None, "order", None)
    assert len(one.collectives) == 18
    assert one.start_ns > 0
    pickle.dumps(one)


def test_a_damaged_file_gives_what_is_whole_and_says_what_was_lost(tmp_path):
    text = json.dumps(raw("h200/ranks/tp/rank0"))
    path = tmp_path / "rank0.json"
    path.write_text(text[: len(text) * 3 // 4])
    one = examine(path)
    assert any(notice.lossy for notice in one.notices)
    for device in one.breakdown:
        busy = device.compute_ns + device.exposed_communication_ns + device.copy_ns
        assert busy + device.whole_idle_ns == device.window_ns


def test_what_is_no_trace_is_an_error(tmp_path):
    with pytest.raises(ReadError):
        examine(tmp_path / "absent.json")
    (tmp_path / "notes.json").write_text('{"a": 1}')
    with pytest.raises(ReadError):
        examine(tmp_path / "notes.json")
