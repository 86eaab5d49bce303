"""Order, duplicates, other jobs, gaps: by what is in the files, never by their names."""

import gzip
import json
import re
import shutil

import pytest

from tracehunch.compare.over_time import cycle_of, over_time
from tracehunch.trace import read, read_bytes


def codes(report):
    return [notice.code for run in report.runs for notice in run.notices]


def of_bytes(data, name):
    return cycle_of(read_bytes(data, name), name)


def raw(path):
    return gzip.decompress(path.read_bytes())


def test_order_is_that_of_time(files, cycles, report):
    mixed = cycles("backend")
    mixed = [mixed[at] for at in (3, 0, 5, 1, 4, 2)]
    renamed = [
        of_bytes(raw(path), f"{name}.json") for name, path in zip("fbdace", files("backend"), strict=True)
    ]
    starts = [cycle.start_ns for cycle in report("backend").runs[0].cycles]
    assert [one.start_ns for one in over_time(mixed).runs[0].cycles] == starts == sorted(starts)
    assert [one.label[0] for one in over_time(renamed).runs[0].cycles] == list("fbdace")


def test_same_recording_twice_counts_once(files, cycles):
    copy = of_bytes(raw(files("nothing")[0]), "copy.json")  # unpacked, named otherwise
    both = over_time([*cycles("nothing"), copy])
    assert len(both.runs[0].cycles) == 6
    assert both.left_out[0].endswith("it is counted once")


def test_another_job_is_left_out_and_named(cycles, h200):
    other = h200 / "models" / "llama_sdpa_train.json.gz"
    both = over_time([*cycles("nothing"), cycle_of(read(other), str(other))])
    assert [len(run.cycles) for run in both.runs] == [6]
    assert "another job on NVIDIA H200" in both.left_out[0]
    assert "llama_sdpa_train" in both.left_out[0]


def test_missing_cycle_is_said(cycles):
    found = over_time([one for at, one in enumerate(cycles("nothing")) if at != 2])
    assert codes(found) == ["missing-cycle"]


def test_steps_that_start_again_are_said_and_the_change_is_still_found(files):
    def restarted(match):
        return b"ProfilerStep#%d" % (int(match[1]) - 36)

    made = [
        of_bytes(re.sub(rb"ProfilerStep#(\d+)", restarted, raw(path)) if at > 2 else raw(path), f"{at}.json")
        for at, path in enumerate(files("backend"))
    ]
    found = over_time(made)
    assert codes(found) == ["steps-restart"]
    assert found.runs[0].shifts[0].place.cycle == 3


def test_files_without_absolute_time_go_by_their_steps(files, run_of):
    made = []
    for name, path in zip("fedcba", files("backend"), strict=True):
        loaded = json.loads(raw(path))
        first = min(event["ts"] for event in loaded["traceEvents"] if event.get("ph") == "X")
        for event in loaded["traceEvents"]:
            if "ts" in event:
                event["ts"] -= first
        loaded["baseTimeNanoseconds"] = 0
        made.append(of_bytes(json.dumps(loaded).encode(), f"{name}.json"))
    found = over_time(made)
    assert codes(found) == ["no-absolute-time"]
    assert [one.scope for one in found.runs[0].shifts] == [one.scope for one in run_of("backend").shifts]
    assert found.runs[0].shifts[0].place.step == run_of("backend").shifts[0].place.step


def test_overlapping_files_count_their_calls_once(files, cycles):
    data = raw(files("backend")[4])
    part = of_bytes(data[: len(data) // 2], "part.json")
    found = over_time([*cycles("backend"), part])
    assert set(codes(found)) == {"overlap", "truncated"}
    assert found.runs[0].calls["forward"] == 36


def test_ranks_are_kept_apart(files):
    made = [
        of_bytes(data.replace(b'"traceEvents"', info + b'"traceEvents"', 1), f"{rank}-{at}.json")
        for at, path in enumerate(files("sleep"))
        for rank in (0, 1)
        for data, info in [(raw(path), b'"distributedInfo": {"rank": %d, "world_size": 2},' % rank)]
    ]
    found = over_time(made)
    assert [(run.label, len(run.cycles)) for run in found.runs] == [("rank 0", 6), ("rank 1", 6)]
    assert [run.shifts[0].scope for run in found.runs] == ["load", "load"]


def test_two_processes_at_once_are_two_runs(files, cycles):
    (pid,) = {cycle.process for cycle in cycles("nothing")}
    made = [
        of_bytes(raw(path).replace(pid.encode(), b"99999"), f"{at}.json")
        for at, path in enumerate(files("nothing"))
    ]
    found = over_time([*cycles("nothing"), *made])
    assert len(found.runs) == 2
    assert any("99999" in run.label for run in found.runs)


@pytest.mark.parametrize("name", ["backend"])
def test_files_are_told_by_their_content_not_their_dates(tmp_path, files, name):
    for path in reversed(files(name)):
        shutil.copy(path, tmp_path / path.name)
    found = over_time([cycle_of(read(path), str(path)) for path in tmp_path.iterdir()])
    assert found.runs[0].shifts[0].place.cycle == 3
