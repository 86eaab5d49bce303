import gzip
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from tracehunch import checks
from tracehunch.facts import measure
from tracehunch.report import json_report
from tracehunch.trace import read
from tracehunch.tree import link
from tracehunch.verdict import Look

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from big import base_of, made, moved
from speed_traces import relabelled

GPU = ("kernel", "gpu_memcpy", "gpu_memset")


def looked_at(path):
    facts = measure(link(read(path)))
    return json.loads(json_report.render(Look(facts, checks.run(facts))))


def events_of(path):
    return json.loads(path.read_bytes())["traceEvents"]


@pytest.fixture(scope="module")
def source(h200):
    return h200 / "faults" / "sync_item.json.gz"


@pytest.fixture(scope="module")
def base(source):
    return base_of(source, stacks=True)


@pytest.fixture(scope="module")
def thrice(base, tmp_path_factory):
    path = tmp_path_factory.mktemp("big") / "thrice.json"
    made(path, base, None, 3)
    return path


def test_one_repetition_is_the_recording_itself(source, base, tmp_path):
    size, events = made(tmp_path / "once.json", base, None, 1)
    recorded = json.loads(gzip.decompress(source.read_bytes()))
    again = json.loads((tmp_path / "once.json").read_bytes())
    assert size == (tmp_path / "once.json").stat().st_size
    assert events == len(recorded["traceEvents"])

    def texts(document):
        return sorted(json.dumps(event, sort_keys=True) for event in document.pop("traceEvents"))

    assert texts(again) == texts(recorded)
    assert again == recorded


def test_repetitions_say_the_same_per_call_and_count_so_many_times_more(source, thrice):
    one, three = looked_at(source), looked_at(thrice)
    for key in ("n_kernels", "n_gpu_ops", "n_launches", "n_cpu_ops", "n_steps"):
        assert three["trace"]["counts"][key] == 3 * one["trace"]["counts"][key] > 0
    assert three["trace"]["warnings"] == one["trace"]["warnings"]
    calls = {(scope["name"], scope["kind"]): scope for scope in three["scopes"]}
    compared = 0
    for scope in one["scopes"]:
        if scope["kind"] != "whole":
            other = calls[scope["name"], scope["kind"]]
            assert other["calls"] == 3 * scope["calls"]
            assert other["facts"] == scope["facts"]
            compared += len(scope["facts"])
    assert compared > 20
    ids = [[(finding["id"], finding["scope"]) for finding in look["findings"]] for look in (one, three)]
    assert ids[0] == ids[1] != []


def test_no_number_that_ties_events_together_is_used_by_two_repetitions(source, thrice):
    recorded = json.loads(gzip.decompress(source.read_bytes()))["traceEvents"]
    for name, of in (
        ("correlation", lambda e: e.get("args", {}).get("correlation") if e.get("cat") in GPU else None),
        ("External id", lambda e: e.get("args", {}).get("External id") if e.get("cat") == "cpu_op" else None),
        ("Python id", lambda e: e.get("args", {}).get("Python id")),
        ("Ev Idx", lambda e: e.get("args", {}).get("Ev Idx")),
        ("ac2g", lambda e: (e["id"], e["ph"]) if e.get("cat") == "ac2g" else None),
        ("fwdbwd", lambda e: (e["id"], e["ph"]) if e.get("cat") == "fwdbwd" else None),
    ):
        once, often = (
            Counter(Counter(filter(None, map(of, events))).values())
            for events in (recorded, events_of(thrice))
        )
        assert often == Counter({times: 3 * count for times, count in once.items()}), name
    steps = [e["name"] for e in events_of(thrice) if e.get("cat") == "user_annotation"]
    numbers = sorted({int(name.removeprefix("ProfilerStep#")) for name in steps if name.startswith("Prof")})
    assert numbers == list(range(numbers[0], numbers[0] + 9))


def test_parents_and_launches_are_found_in_their_own_repetition(thrice):
    events = events_of(thrice)
    python = {e["args"]["Python id"] for e in events if e.get("cat") == "python_function"}
    parents = {e["args"]["Python parent id"] for e in events if e.get("cat") == "python_function"}
    assert len(python) > 900
    assert parents - {None} <= python
    launches = {
        e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")
    }
    gpu = [e for e in events if e.get("cat") in GPU]
    assert gpu
    for event in gpu:
        launch = launches[event["args"]["correlation"]]
        assert launch["ts"] < event["ts"]
        assert launch["args"]["External id"] == event["args"]["External id"]


@pytest.mark.parametrize("share", [0.2, 0.66, 1.4])
def test_a_part_of_a_repetition_keeps_gpu_work_with_its_launch(base, source, tmp_path, share):
    wanted = share * len(gzip.decompress(source.read_bytes()))
    path = tmp_path / "part.json"
    size, count = made(path, base, wanted)
    assert abs(size / wanted - 1) < 0.2
    events = events_of(path)
    assert len(events) == count
    counts = looked_at(path)["trace"]["counts"]
    assert counts["n_gpu_ops"] > 0
    assert counts["n_orphan_gpu_ops"] == counts["n_bad_dur"] == 0
    began = [e["ts"] for e in events if e.get("cat") == "cpu_op"]
    closed = [e["ts"] + e["dur"] for e in events if e.get("cat") in ("cpu_op", "python_function")]
    assert max(closed) < max(began) + 1000  # us: nothing stays open until the end of the recording


def test_without_stacks_no_python_function_is_left(source, tmp_path):
    made(tmp_path / "bare.json.gz", base_of(source, stacks=False), None, 2)
    document = json.loads(gzip.decompress((tmp_path / "bare.json.gz").read_bytes()))
    assert "with_stack" not in document
    assert not [e for e in document["traceEvents"] if e.get("cat") == "python_function"]
    assert not list(tmp_path.glob("*.part"))


def test_what_was_not_set_is_not_moved():
    shift = {"correlation": 10, "External id": 10, "ts": 1000, "ProfilerStep#": 3, "Python id": 5}
    text = '"name": "ProfilerStep#0", "ts": 7.123, "External id": 0, "correlation": 4, "Python id": null'
    assert moved(text, shift, 2) == (
        '"name": "ProfilerStep#6", "ts": 2007.123, "External id": 0, "correlation": 24, "Python id": null'
    )
    quoted = r'"name": "a \"ts\": 5 of another"'
    assert moved(quoted, shift, 2) == quoted


def test_a_rank_of_a_larger_job_says_so_everywhere(h200):
    text = gzip.decompress((h200 / "ranks" / "ddp" / "rank1.json.gz").read_bytes()).decode()
    document = json.loads(relabelled(text, 5, 8))
    job = document["distributedInfo"]
    assert (job["rank"], job["world_size"], job["pg_config"][0]["pg_size"]) == (5, 8, 8)
    assert job["pg_config"][0]["ranks"] == list(range(8))
    groups = {
        e["args"]["Process Group Ranks"] for e in document["traceEvents"] if "Group size" in e.get("args", {})
    }
    assert groups == {str(list(range(8)))}
