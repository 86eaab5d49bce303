"""Each expectation was counted in the raw JSON, or is how long the fused step was measured to take."""

from pathlib import Path

import pytest

from tracehunch.checks import unfused_optimizer
from tracehunch.verdict import CannotTell, Finding

H200 = Path(__file__).parents[1] / "data" / "h200"
PATTERNS = "../h200_patterns/"
TRACES = sorted(str(path.relative_to(H200)).removesuffix(".json.gz") for path in H200.rglob("*.json.gz"))


def findings(facts):
    return [found for found in unfused_optimizer.check(facts) if isinstance(found, Finding)]


def step_us(document, scope="optimizer", calls=3):
    """Wall time a call of the scope, and GPU time a call of what was launched in the recorded window."""
    events = document["traceEvents"]
    wall = [e["dur"] for e in events if e.get("cat") == "user_annotation" and e["name"] == scope]
    launched = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    gpu = [e["dur"] for e in events if e.get("cat") == "kernel" and e["args"]["correlation"] in launched]
    return sum(wall) / calls, sum(gpu) / calls


def test_a_kernel_for_each_tensor_is_a_warning(facts_of, raw):
    (found,) = findings(facts_of("faults/opt_forloop"))
    assert (found.id, found.scope, found.severity) == ("unfused-optimizer", "optimizer", "warning")
    assert (found.confidence, found.subject, found.per_call) == ("high", "AdamW", 192)
    assert "192 kernels a step for about 24 tensors" in found.summary
    assert "fused=True" in found.fix
    events = raw("faults/opt_forloop")["traceEvents"]
    assert {events[position]["cat"] for position in found.evidence} == {"kernel"}
    assert len(found.evidence) == 3 * 192


def test_at_stake_is_what_the_fused_step_was_measured_to_save(facts_of, raw):
    (found,) = findings(facts_of("faults/opt_forloop"))
    loop, _ = step_us(raw("faults/opt_forloop"))
    fused, _ = step_us(raw("faults/opt_fused"))
    assert found.time_at_stake_us == pytest.approx(loop - fused, rel=0.1)


@pytest.mark.parametrize(
    ("loop", "better", "error"),
    [("sgd_momentum_loop", "sgd_momentum_fused", 0.15), ("rmsprop_loop", "rmsprop_foreach", 0.1)],
)
def test_other_optimizers_save_their_launches(facts_of, raw, loop, better, error):
    (found,) = findings(facts_of(f"{PATTERNS}{loop}"))
    saved = step_us(raw(f"{PATTERNS}{loop}"))[0] - step_us(raw(f"{PATTERNS}{better}"))[0]
    assert found.severity == "warning"
    assert "about 60 tensors" in found.summary
    assert found.time_at_stake_us == pytest.approx(saved, rel=error)
    assert ("fused=True" in found.fix) == (loop == "sgd_momentum_loop")


@pytest.mark.parametrize(
    ("name", "severity"), [("adam_loop_large", "warning"), ("adam_foreach_large", "note")]
)
def test_where_the_gpu_is_busy_fused_saves_traffic(facts_of, raw, name, severity):
    (found,) = findings(facts_of(f"{PATTERNS}{name}"))
    saved = step_us(raw(f"{PATTERNS}{name}"))[1] - step_us(raw(f"{PATTERNS}adam_fused_large"))[1]
    assert found.severity == severity
    assert found.time_at_stake_us == pytest.approx(saved, rel=0.1)


def test_an_optimizer_of_ones_own_is_told_of_foreach_functions(facts_of):
    (found,) = findings(facts_of(f"{PATTERNS}custom_optimizer_loop"))
    assert (found.severity, found.confidence, found.subject) == ("warning", "medium", "Mine")
    assert "torch._foreach_" in found.fix
    assert found.summary.endswith("at rec.py(142): step")


@pytest.mark.parametrize(
    "name",
    [
        "adamw_loop_3_tensors",  # too few to matter
        "sgd_momentum_fused",
        "adam_fused_large",
        "rmsprop_foreach",
        "loop_over_unbind",
    ],
)
def test_nothing_to_say_of(facts_of, name):
    assert findings(facts_of(f"{PATTERNS}{name}")) == []


def test_a_foreach_step_of_adam_is_a_note(facts_of, raw):
    (found,) = findings(facts_of("models/llama_sdpa_train"))
    wall, _ = step_us(raw("models/llama_sdpa_train"), calls=2)
    assert (found.scope, found.severity, found.per_call) == ("optimizer", "note", 56)
    assert 0.3 * wall < found.time_at_stake_us < 0.6 * wall


def test_warnings_and_notes_over_all_traces(facts_of):
    found = {name: findings(facts_of(name)) for name in TRACES}
    assert [name for name in TRACES if any(f.severity == "warning" for f in found[name])] == [
        "faults/opt_forloop"
    ]
    assert [name for name in TRACES if any(f.severity == "note" for f in found[name])] == [
        "models/llama_sdpa_train",
        "models/llama_sdpa_train_stack",
    ]


def test_without_gpu_activities_the_cost_cannot_be_told(raw, facts_from):
    document = raw("faults/opt_forloop")
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") != "kernel"]
    (found,) = unfused_optimizer.check(facts_from(document))
    assert isinstance(found, CannotTell)
    assert found.key == "unfused-optimizer"
    assert "192 kernels a step for about 24 tensors" in found.reason
    assert found.record_with == "ProfilerActivity.CUDA"


def test_an_optimizer_on_a_cpu_launches_nothing(raw, facts_from):
    document = raw("faults/opt_forloop")
    cpu = {"cpu_op", "user_annotation", "Trace", None}
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") in cpu]
    document["deviceProperties"] = []
    assert list(unfused_optimizer.check(facts_from(document))) == []


def test_a_loop_of_the_programs_own_over_tensors_of_several_sizes_is_a_warning(raw, facts_from):
    """Constructed from a loop over tensors of one size, which is a note: every other tensor is smaller."""
    document = raw("../h200_planted/update_by_hand")
    (found,) = findings(facts_from(document))
    assert (found.severity, found.confidence, found.per_call) == ("note", "low", 48)
    updates = [e for e in document["traceEvents"] if e.get("name") in {"aten::mul", "aten::sub_"}]
    assert len(updates) == 3 * 48
    for event in updates[::4] + updates[1::4]:
        event["args"]["Input Dims"] = [[128, 256], *event["args"]["Input Dims"][1:]]
    (found,) = findings(facts_from(document))
    assert (found.severity, found.confidence, found.subject) == ("warning", "high", "aten::mul, aten::sub_")
    wall, _ = step_us(document)
    assert 0.8 * wall < found.time_at_stake_us < wall  # all passes but one of 24, and Python around them
