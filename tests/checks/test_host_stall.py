"""Stretches were measured in the raw JSON: between two ops or calls of the launching thread."""

from pathlib import Path

import pytest

from tracehunch.checks import host_stall
from tracehunch.verdict import CannotTell

DATA = Path(__file__).parents[1] / "data" / "h200"
TRACES = sorted(
    path.relative_to(DATA).as_posix().removesuffix(".json.gz") for path in DATA.rglob("*.json.gz")
)
FOUND = {
    "faults/cpu_stall": "warning",
    "models/llama_sdpa_generate": "note",
}  # 1.3 of 72 ms before the first op


def results(facts):
    return list(host_stall.check(facts))


def test_sleep_at_the_start_of_each_step(facts_of, raw):
    (found,) = results(facts_of("faults/cpu_stall"))
    assert (found.severity, found.scope, found.subject, found.per_call) == (
        "warning",
        "step",
        "aten::layer_norm",
        1,
    )
    assert found.time_at_stake_us == pytest.approx(3000, rel=0.1)
    assert "3 times" in found.summary
    cited = [raw("faults/cpu_stall")["traceEvents"][position] for position in found.evidence]
    assert [event["name"] for event in cited] == ["aten::layer_norm"] * 3


@pytest.mark.parametrize("name", TRACES)
def test_no_other_trace_has_one(facts_of, name):
    assert [f.severity for f in results(facts_of(name))] == ([FOUND[name]] if name in FOUND else [])


def sleeping(document, name, *, around):
    """Fill the stretch before each first op of a step with a Python frame, or an annotation."""
    events = document["traceEvents"]
    steps = [e for e in events if e.get("cat") == "user_annotation" and e["name"] == "step"]
    for step in steps:
        inside = [
            e for e in events if e.get("cat") == "cpu_op" and step["ts"] <= e["ts"] < step["ts"] + step["dur"]
        ]
        until = min(e["ts"] for e in inside)
        frame = {"ph": "X", "pid": step["pid"], "tid": step["tid"], "args": {}}
        for text, cat in (
            (name, around),
            *([("<built-in function sleep>", around)] if around == "python_function" else []),
        ):
            events.append(
                frame | {"cat": cat, "name": text, "ts": step["ts"] + 5, "dur": until - step["ts"] - 10}
            )
    return document


def test_with_stacks_it_names_the_line(raw, facts_from):
    """Constructed: frames put into the trace of the sleep."""
    document = sleeping(raw("faults/cpu_stall"), "train.py(41): load", around="python_function")
    (found,) = results(facts_from(document | {"with_stack": 1}))
    assert found.summary.endswith(", at train.py(41): load (in <built-in function sleep>)")
    assert "with_stack" not in found.cause


def test_python_code_of_pytorch_is_not_outside_it(raw, facts_from):
    """Constructed: the same time in a frame of torch."""
    document = sleeping(raw("faults/cpu_stall"), "torch/optim/adamw.py(200): step", around="python_function")
    document["traceEvents"] = [
        e for e in document["traceEvents"] if e.get("name") != "<built-in function sleep>"
    ]
    assert results(facts_from(document | {"with_stack": 1})) == []


def test_the_making_of_a_batch_is_named(raw, facts_from):
    """Constructed: the annotation of a DataLoader put around the sleep."""
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    (found,) = results(facts_from(sleeping(raw("faults/cpu_stall"), loader, around="user_annotation")))
    assert (found.severity, found.subject) == ("warning", loader)
    assert loader in found.summary
    assert found.time_at_stake_us == pytest.approx(3000, rel=0.1)
    assert "num_workers" in found.fix


def test_a_pause_that_the_queue_outlasts_costs_nothing(raw, facts_from):
    """Constructed: kernels of the GPU-bound trace made so long that the host is ahead when it pauses."""
    document = raw("faults/cpu_stall")
    kernels = [e for e in document["traceEvents"] if e.get("cat") in {"kernel", "gpu_memset", "gpu_memcpy"}]
    kernels.sort(key=lambda e: e["ts"])
    now = kernels[0]["ts"]
    for kernel in kernels:
        kernel["ts"], kernel["dur"] = max(now, kernel["ts"]), 400.0
        now = kernel["ts"] + kernel["dur"]
    found = results(facts_from(document))
    assert [f.time_at_stake_us < 1300 for f in found] == [True]  # only the first, before anything was queued


def test_without_ops_it_cannot_tell(raw, facts_from):
    document = raw("faults/cpu_stall")
    keep = [e for e in document["traceEvents"] if e.get("cat") not in {"cpu_op", "user_annotation"}]
    (found,) = results(facts_from(document | {"traceEvents": keep}))
    assert isinstance(found, CannotTell)
    assert "ProfilerActivity.CPU" in found.record_with


def between_ops(document, name):
    """Longest blank of the host's main thread in each call of ``step``, from the raw JSON."""
    rows = [e for e in document["traceEvents"] if e.get("ph") == "X"]
    steps = sorted(
        (e for e in rows if e.get("cat") == "user_annotation" and e["name"] == name), key=lambda e: e["ts"]
    )
    work = sorted(
        (e["ts"], e["ts"] + e["dur"])
        for e in rows
        if e.get("cat") in {"cpu_op", "cuda_runtime", "cuda_driver"}
    )
    longest = []
    for step in steps:
        now, found = step["ts"], 0.0
        for start, end in work:
            if step["ts"] <= start < step["ts"] + step["dur"]:
                found, now = max(found, start - now), max(now, end)
        longest.append(max(found, step["ts"] + step["dur"] - now))
    return longest


@pytest.mark.parametrize(
    "name", ["sleep_in_forward", "work_between_forward_and_backward", "graph_and_python"]
)
def test_two_milliseconds_of_other_work_wherever_it_is(facts_of, raw, name):
    """In a forward, before autograd's thread goes on, after a replay of a graph in a trace without any op."""
    (found,) = results(facts_of(f"../h200_idle/{name}"))
    assert (found.severity, found.scope, found.per_call) == ("warning", "step", 1)
    blanks = between_ops(raw(f"../h200_idle/{name}"), "step")
    assert found.time_at_stake_us == pytest.approx(sum(blanks) / len(blanks), rel=0.05)


def test_the_line_that_sleeps(facts_of):
    (found,) = results(facts_of("../h200_idle/sleep_in_forward"))
    assert found.summary.endswith(", at train.py(31): forward (in <built-in function sleep>)")


@pytest.mark.parametrize("name", ["loader_inline", "loader_inline_plain"])
def test_a_batch_made_in_the_loop(facts_of, raw, name):
    """What the loader's annotation lasts is at stake, with its ops on CPU tensors."""
    (found,) = results(facts_of(f"../h200_idle/{name}"))
    events = raw(f"../h200_idle/{name}")["traceEvents"]
    loading = [
        e["dur"] for e in events if e.get("name", "").startswith("enumerate(DataLoader)#") and e["ph"] == "X"
    ]
    assert (found.severity, found.scope) == ("warning", "step")
    assert found.time_at_stake_us == pytest.approx(sum(loading) / 3, rel=0.05)
    assert [events[position]["name"] for position in found.evidence] == [found.subject] * 3


def test_sleep_while_the_gpu_is_behind_costs_nothing(facts_of):
    assert results(facts_of("../h200_idle/stall_behind_queue")) == []


def test_half_a_millisecond_between_steps_belongs_to_any_loop(facts_of):
    assert results(facts_of("../h200_patterns/round_trip_training")) == []
