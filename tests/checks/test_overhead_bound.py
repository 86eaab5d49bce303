"""Time at stake was counted from the raw JSON: gaps that end with work launched after they began."""

from pathlib import Path

import pytest

from tracehunch.checks import overhead_bound
from tracehunch.verdict import CannotTell, Finding

DATA = Path(__file__).parents[1] / "data" / "h200"
TRACES = sorted(
    path.relative_to(DATA).as_posix().removesuffix(".json.gz") for path in DATA.rglob("*.json.gz")
)
ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset"}
WARNED = {
    *(f"faults/{name}" for name in ("clean", "cpu_stall", "dtype_pingpong", "for_loop_index")),
    *(f"faults/{name}" for name in ("opt_forloop", "sync_item", "tiny_batch")),
    *(f"models/llama_sdpa_{name}" for name in ("compiled", "generate", "padded", "prefill")),
    *(f"models/llama_sdpa_{name}" for name in ("train", "train_stack")),
    *("ranks/ddp/rank0", "ranks/tp/rank0"),
    *("situations/gpt_varying_lengths_cudnn", "situations/moe_loop_where_syncs"),
}
NOTED = {
    "faults/two_streams",  # 8 of 12 launches a call
    "models/llama_eager_prefill",  # 27 % of the time
    "ops/fwdbwd_cudnn",
    "ops/fwdbwd_flash",
    "ops/matmul_add_64_cold",  # two launches a call, and next to no work
    "ops/matmul_add_64_warm",
    "ranks/ddp/rank1",  # 9 %: it waits for rank 0
}


def results(facts):
    return list(overhead_bound.check(facts))


def waiting_us(document, scope):
    """Per call of an annotation, what of the gaps before work that was launched in them lies inside it."""
    rows = [e for e in document["traceEvents"] if e.get("ph") == "X"]
    launched = {
        e["args"]["correlation"]: e["ts"] + e["dur"]
        for e in rows
        if e.get("cat") in {"cuda_runtime", "cuda_driver"} and "Synchronize" not in e["name"]
    }
    calls = [e for e in rows if e.get("cat") == "user_annotation" and e["name"] == scope]
    waited, end = 0.0, min(e["ts"] for e in rows if e.get("cat") == "user_annotation")
    for e in sorted((e for e in rows if e.get("cat") in ON_GPU), key=lambda e: e["ts"]):
        if launched[e["args"]["correlation"]] > end:
            waited += sum(max(min(e["ts"], c["ts"] + c["dur"]) - max(end, c["ts"]), 0) for c in calls)
        end = max(end, e["ts"] + e["dur"])
    last = max(e["ts"] + e["dur"] for e in calls)
    return (waited + max(last - end, 0)) / len(calls)


@pytest.mark.parametrize(
    ("name", "scope", "launches"),
    [
        ("faults/clean", "step", 24),
        ("faults/tiny_batch", "step", 30),
        ("faults/opt_forloop", "optimizer", 192),
        ("models/llama_sdpa_prefill", "model_fwd", 246),
        ("models/llama_sdpa_generate", "generate", 2558),
    ],
)
def test_what_waits_for_its_launches(facts_of, raw, name, scope, launches):
    (found,) = results(facts_of(name))
    document = raw(name)
    assert (found.severity, found.scope, found.confidence) == ("warning", scope, "high")
    assert found.per_call == launches
    assert found.time_at_stake_us == pytest.approx(waiting_us(document, scope), rel=0.03)
    cited = [document["traceEvents"][position] for position in found.evidence]
    assert {e["cat"] for e in cited} <= {"cuda_runtime", "cuda_driver"}
    assert "reduce-overhead" in found.fix


def test_one_finding_names_the_parts_of_a_training_step(facts_of):
    (found,) = results(facts_of("models/llama_sdpa_train"))
    assert found.scope == "train_step"
    assert found.summary.endswith("most of it in backward (52%) and forward (41%)")
    assert found.time_at_stake_us == pytest.approx(33_600, rel=0.02)


def test_host_code_that_held_up_launches_is_not_in_it(facts_of):
    (found,) = results(facts_of("faults/cpu_stall"))
    assert found.time_at_stake_us < 1000  # of 4.1 ms a call, 3.2 of them sleep


def test_compiled_code_is_told_to_use_graphs(facts_of):
    (found,) = results(facts_of("models/llama_sdpa_compiled"))
    assert found.fix.startswith("Compile with mode=")


@pytest.mark.parametrize("name", TRACES)
def test_warnings_and_notes_are_exactly_these(facts_of, name):
    severities = [f.severity for f in results(facts_of(name)) if isinstance(f, Finding)]
    assert severities == ["warning"] * (name in WARNED) + ["note"] * (name in NOTED)


def test_launches_that_were_not_recorded_cannot_be_told(raw, facts_from):
    document = raw("faults/clean")
    keep = [e for e in document["traceEvents"] if e.get("cat") not in {"cuda_runtime", "cuda_driver"}]
    (found,) = results(facts_from(document | {"traceEvents": keep}))
    assert isinstance(found, CannotTell)
    assert "ProfilerActivity.CPU" in found.record_with


def test_several_parts_of_a_step_are_one_finding_of_the_step(raw, facts_from):
    """The annotation around the step taken away: forward, backward and optimizer are beside each other."""
    document = raw("models/llama_sdpa_train")
    keep = [e for e in document["traceEvents"] if e.get("name") != "train_step"]
    (found,) = results(facts_from(document | {"traceEvents": keep}))
    assert found.scope == "ProfilerStep"
    assert "backward (52%) and forward (41%)" in found.summary


def test_without_annotations_and_steps_it_is_of_the_whole(raw, facts_from):
    document = raw("faults/clean")
    keep = [e for e in document["traceEvents"] if "annotation" not in e.get("cat", "")]
    (found,) = results(facts_from(document | {"traceEvents": keep}))
    assert (found.scope, found.per_call) == ("whole", 72)
