"""Runs with one planted change each: it is found, alone, where it is, with its cause."""

import gzip
import json
from statistics import median

import numpy as np
import pytest

from tracehunch.compare.over_time import cycle_of, over_time
from tracehunch.facts import measure
from tracehunch.trace import read, read_bytes
from tracehunch.tree import link


def drift(run, scope, key):
    return next(one for one in run.drifts if (one.scope, one.key) == (scope, key))


@pytest.mark.parametrize("name", ["nothing", "nothing_busy"])
def test_nothing_changes(run_of, name):
    run = run_of(name)
    assert run.shifts == ()
    assert run.tried >= 10
    assert drift(run, "forward", "leaf_ops").kind == "constant"


def test_another_attention_backend(run_of):
    (shift,) = run_of("backend").shifts
    assert (shift.scope, shift.kind, shift.severity) == ("attention", "step", "warning")
    assert (shift.place.cycle, shift.place.step) == (3, 39)
    assert [level.value for level in shift.drifts[0].levels] == ["flash", "math"]
    assert shift.causes[0].id == "attention-backend"
    assert [name for name, _ in shift.also] == ["forward", "ProfilerStep"]
    assert "sdpa-math-fallback" in [finding.id for finding in shift.came]


def test_a_sleep_in_python(run_of):
    (shift,) = run_of("sleep").shifts
    assert (shift.scope, shift.place.cycle, shift.place.step) == ("load", 3, 39)
    assert shift.cost_us == pytest.approx(4_100, abs=250)
    assert [cause.id for cause in shift.causes] == ["outside-pytorch"]


def test_memory_that_is_never_given_back(run_of):
    (shift,) = run_of("leak").shifts
    assert (shift.scope, shift.kind, shift.severity) == ("ProfilerStep", "trend", "warning")
    assert shift.drifts[0].slope == 4 * 128 * 128 * 4  # bytes of the tensor that each step keeps
    assert shift.causes[0].id == "memory-kept"


def test_numbers_agree_with_the_raw_file(files, run_of):
    """Wall time of ``load`` by cycle, from the JSON, the first call of each left out."""
    usual = [[], []]
    for at, path in enumerate(files("sleep")):
        events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        calls = sorted((e["ts"], e["dur"]) for e in events if e.get("name") == "load" and e.get("ph") == "X")
        usual[at >= 3] += [length for _, length in calls[1:]]
    levels = drift(run_of("sleep"), "load", "wall_time").levels
    assert [level.value for level in levels] == [pytest.approx(median(some), abs=1e-3) for some in usual]
    assert [level.calls for level in levels] == [15, 15]


@pytest.mark.parametrize("name", ["models/llama_sdpa_train", "situations/moe_loop_where_syncs"])
def test_calls_are_those_of_the_facts(h200, name):
    """The median over what is measured call by call is what ``look`` says of the scope."""
    trace = read(h200 / f"{name}.json.gz")
    cycle, facts = cycle_of(trace, name), measure(link(trace))
    seen = 0
    for scope in facts.scopes:
        for key, fact in scope.facts.items() if scope.scope.name in cycle.scopes else ():
            values = cycle.scopes[scope.scope.name].values.get(key)
            if values is not None and fact.unit == "us" and not np.isnan(values).any():
                assert np.median(values) == pytest.approx(fact.value, abs=1e-3), (scope.scope.name, key)
                seen += 1
    assert seen > 10


def test_growing_sequences_on_a_gpu(h200):
    """Six steps of lengths that grow: too few times to test, but FLOPs are exact, and times go with them."""
    path = h200 / "situations" / "gpt_varying_lengths_cudnn.json.gz"
    (run,) = over_time([cycle_of(read(path), str(path))]).runs
    (shift,) = run.shifts
    keys = [one.key for one in shift.drifts]
    assert (shift.scope, shift.kind) == ("step", "trend")
    assert {"flops", "grid_blocks", "gpu_time"} <= set(keys)
    assert shift.causes[0].id == "more-work"


def test_cycles_cut_from_one_file_tell_what_the_file_tells(h200, tmp_path):
    """A recording cut between its steps, a file a step, in files whose names run backwards."""
    path = h200 / "situations" / "gpt_varying_lengths_cudnn.json.gz"
    loaded = json.loads(gzip.decompress(path.read_bytes()))
    events = loaded["traceEvents"]
    steps = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in events
        if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep")
    )
    launched = {
        e["args"]["correlation"]: e["ts"]
        for e in events
        if "correlation" in e.get("args", {}) and e["cat"].startswith("cuda_")
    }
    cycles = []
    for at, (low, high) in enumerate(steps):
        mine = [
            e
            for e in events
            if "ts" in e and low <= launched.get(e.get("args", {}).get("correlation"), e["ts"]) < high
        ]
        name = tmp_path / f"{'fedcba'[at]}.json"
        name.write_text(json.dumps({**loaded, "traceEvents": mine}))
        cycles.append(cycle_of(read(name), str(name)))
    (run,) = over_time(cycles).runs
    assert len(run.cycles) == 6
    assert [(one.scope, one.kind) for one in run.shifts] == [("step", "trend")]


def test_a_trace_with_one_call_has_nothing_to_compare(h200):
    path = h200 / "models" / "llama_sdpa_generate.json.gz"
    (run,) = over_time([cycle_of(read(path), str(path))]).runs
    assert run.shifts == ()
    assert run.tried == 0


def test_another_op_in_the_place_of_one_is_a_change_in_one_file():
    """Counts stay: only the names say it. Steps of one file are the points in time."""
    events = []
    for step in range(30):
        start = 1e6 + 1000 * step
        names = [f"ProfilerStep#{step}", "layer"], ["aten::mm" if step < 17 else "aten::bmm"]
        for cat, of_cat in zip(("user_annotation", "cpu_op"), names, strict=True):
            for depth, name in enumerate(of_cat, start=0 if cat == "user_annotation" else 2):
                span = {"ts": start + depth, "dur": 900 - 2 * depth, "pid": 1, "tid": 1}
                events.append({"ph": "X", "cat": cat, "name": name, **span})
    data = json.dumps({"traceEvents": events}).encode()
    (shift,) = over_time([cycle_of(read_bytes(data, "made.json"), "made.json")]).runs[0].shifts
    assert (shift.scope, shift.place.step, shift.severity) == ("layer", 17, "note")
    assert [one.key for one in shift.drifts] == ["names"]
    assert "gone: aten::mm; new: aten::bmm" in shift.causes[0].text
