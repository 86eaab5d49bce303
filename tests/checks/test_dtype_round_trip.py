"""Each expectation was counted in the raw JSON, or follows from the code that was recorded."""

from pathlib import Path

import pytest

from tracehunch.checks import dtype_round_trip
from tracehunch.checks._idle import idle_of
from tracehunch.verdict import CannotTell, Finding

H200 = Path(__file__).parents[1] / "data" / "h200"
PATTERNS = "../h200_patterns/"
TRACES = sorted(str(path.relative_to(H200)).removesuffix(".json.gz") for path in H200.rglob("*.json.gz"))


def findings(facts):
    return [found for found in dtype_round_trip.check(facts) if isinstance(found, Finding)]


CASTS = ("bfloat16_copy_kernel", "float16_copy_kernel", "LoadWithCast", "bfloat16tofloat32")


def is_cast(event):
    """Tell by name alone."""
    name = event["name"]
    return "copy_kernel" in name and any(word in name for word in CASTS)


def gaps_before(document, wanted, calls=3):
    """Time a call of wanted kernels that the window launched, their number, and the gaps before them."""
    events = document["traceEvents"]
    launched = {e["args"]["correlation"] for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
    gpu = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    gpu = sorted((e for e in gpu if e["args"]["correlation"] in launched), key=lambda e: e["ts"])
    mine = [(e, before) for before, e in zip([None, *gpu], gpu, strict=False) if wanted(e)]
    gaps = sum(max(0, e["ts"] - before["ts"] - before["dur"]) for e, before in mine if before)
    return sum(e["dur"] for e, _ in mine) / calls, len(mine) / calls, gaps / calls


def idle_us(facts, found):
    idle = idle_of(facts)
    return idle.length_us[list(found.idle)].sum()


def test_a_cast_and_the_cast_back_are_a_warning(facts_of, raw):
    (found,) = findings(facts_of("faults/dtype_pingpong"))
    time, number, gaps = gaps_before(raw("faults/dtype_pingpong"), is_cast)
    assert (found.id, found.scope, found.severity) == ("dtype-round-trip", "step", "warning")
    assert (found.confidence, found.subject) == ("high", "bf16 -> fp32 -> bf16")
    assert round(time, 1) == 28.2
    assert "12 casts, 28.23 us" in found.summary
    assert found.per_call == number == 12
    # the GPU waited for each launch, before the first of a step also for the end of the step before
    assert found.time_at_stake_us == pytest.approx(time + gaps, rel=0.1)
    assert "x.to(torch.float32).to(torch.bfloat16) is x" in found.fix
    events = raw("faults/dtype_pingpong")["traceEvents"]
    cited = [events[position] for position in found.evidence]
    assert sum(e["dur"] for e in cited if e["cat"] == "kernel") / 3 == pytest.approx(time)
    assert {e["name"] for e in cited if e["cat"] == "cpu_op"} == {"aten::to"}


def test_without_shapes_names_tell_the_types_and_the_confidence_is_medium(facts_of, raw):
    (found,) = findings(facts_of(f"{PATTERNS}round_trip_relu_no_shapes"))
    time, number, gaps = gaps_before(raw(f"{PATTERNS}round_trip_relu_no_shapes"), is_cast)
    assert (found.severity, found.confidence, found.subject) == ("warning", "medium", "to fp32 -> fp16")
    assert (found.per_call, number) == (12, 12)
    assert found.time_at_stake_us == pytest.approx(time + gaps, rel=0.1)
    assert "aten::clamp_min" in found.summary  # what relu() runs


def test_the_backward_casts_once_more(facts_of, raw):
    """One kernel a call, of the gradient of a sum, is strided, and its name does not say that it casts."""
    (found,) = findings(facts_of(f"{PATTERNS}round_trip_training"))
    events = raw(f"{PATTERNS}round_trip_training")["traceEvents"]
    copies = [e["args"]["Input type"][:2] for e in events if e.get("name") == "aten::copy_"]
    assert found.per_call == sum({"float", "c10::BFloat16"} == set(types) for types in copies) / 3 == 24
    time, number, _ = gaps_before(raw(f"{PATTERNS}round_trip_training"), is_cast)
    assert number == 23
    saved = found.time_at_stake_us - idle_us(facts_of(f"{PATTERNS}round_trip_training"), found) / 3
    assert time * 24 / 23.5 < saved < time * 24 / 22
    assert found.severity == "warning"


def test_casts_of_two_tensors_are_told_apart(facts_of):
    (found,) = findings(facts_of(f"{PATTERNS}round_trip_of_two"))
    assert (found.per_call, found.confidence, found.severity) == (24, "high", "warning")
    assert found.summary.startswith("12 tensors a call")


def test_a_narrower_type_in_between_rounds(facts_of):
    (found,) = findings(facts_of(f"{PATTERNS}round_trip_narrower"))
    assert found.subject == "fp32 -> bf16 -> fp32"
    assert "rounds the values" in found.cause
    assert "unless rounding to torch.bfloat16 is what you want" in found.fix


def test_a_copy_that_is_used_later_too_is_a_note_at_most(facts_of):
    """The program keeps x.float() as its residual, so only the cast back of it is in vain."""
    (found,) = findings(facts_of(f"{PATTERNS}residual_in_fp32"))
    assert (found.severity, found.confidence, found.per_call) == ("note", "medium", 2)


def test_norms_written_by_hand_are_a_note_that_names_the_fused_norm(facts_of, raw):
    (found,) = findings(facts_of("models/llama_sdpa_prefill"))
    assert (found.scope, found.severity, found.subject) == ("model_fwd", "note", "norm")
    assert found.per_call == 13  # two in each of 6 layers, and the last
    assert "torch.nn.RMSNorm" in found.fix
    events = raw("models/llama_sdpa_prefill")["traceEvents"]
    cited = [events[position] for position in found.evidence]
    assert len(cited) == 3 * 13 * 7  # cast, pow, mean, add, rsqrt, mul, cast
    back = [e["dur"] for e in cited if "bfloat16_copy_kernel" in e["name"]]
    assert len(back) == 39
    saved = sum(e["dur"] for e in cited) - sum(back) + idle_us(facts_of("models/llama_sdpa_prefill"), found)
    assert found.time_at_stake_us == pytest.approx(saved / 3)


def test_a_fused_norm_saves_no_less_than_is_said(facts_of, raw):
    """A layer norm of the same rows, which reads and writes what the fused norm would, takes 11.4 us."""
    (found,) = findings(facts_of("models/llama_sdpa_prefill"))
    fused = [
        e["dur"]
        for e in raw("faults/contiguous_copy")["traceEvents"]
        if e.get("cat") == "kernel" and "vectorized_layer_norm" in e["name"] and e["args"]["grid"][0] == 4096
    ]
    weight = 10.9  # the product with the weight, which the fused norm does as well
    each = 535.7 / 13 + weight - sum(fused) / len(fused)
    saved = found.time_at_stake_us - idle_us(facts_of("models/llama_sdpa_prefill"), found) / 3
    assert 0.8 * each < saved / 13 < each


def test_layer_norms_by_hand_are_found_as_well(facts_of):
    (found,) = findings(facts_of(f"{PATTERNS}norm_by_hand"))
    assert (found.severity, found.subject, found.per_call) == ("note", "norm", 6)


@pytest.mark.parametrize("name", ["autocast_training", "conv_channels_last", "loop_8_rows"])
def test_casts_with_work_between_them_are_none(facts_of, name):
    assert findings(facts_of(f"{PATTERNS}{name}")) == []


def test_warnings_over_all_traces(facts_of):
    warned = [name for name in TRACES if any(f.severity == "warning" for f in findings(facts_of(name)))]
    assert warned == ["faults/dtype_pingpong"]


def test_notes_over_all_traces_are_norms_of_llama(facts_of):
    noted = {name for name in TRACES for f in findings(facts_of(name)) if f.severity == "note"}
    assert noted == {name for name in TRACES if name.startswith("models/")} - {"models/llama_sdpa_compiled"}


def test_casts_of_a_replayed_graph_cannot_be_told(raw, facts_from):
    """Constructed: the recorded casts as a graph replays them, without ops."""
    document = raw("faults/dtype_pingpong")
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") != "cpu_op"]
    (found,) = dtype_round_trip.check(facts_from(document))
    assert isinstance(found, CannotTell)
    assert (found.key, found.scope) == ("dtype-round-trip", "step")
    assert found.reason.startswith("12 casts, 28.23 us")
    assert "without the CUDA graph" in found.record_with


def test_a_cpu_casts_too(raw, facts_from):
    """Constructed: the host rows of the recorded trace, as a trace of a CPU has them."""
    document = raw("faults/dtype_pingpong")
    cpu = {"cpu_op", "user_annotation", "Trace", None}
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") in cpu]
    document["deviceProperties"] = []
    (found,) = findings(facts_from(document))
    assert (found.per_call, found.subject) == (12, "bf16 -> fp32 -> bf16")
    assert "CPU time" in found.summary
