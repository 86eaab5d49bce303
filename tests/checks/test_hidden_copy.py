"""Each expectation was counted in the raw JSON, or follows from the op that the recorded script calls."""

import math
from pathlib import Path

from tracehunch.checks import hidden_copy
from tracehunch.verdict import CannotTell, Finding

H200 = Path(__file__).parents[1] / "data" / "h200"
TRACES = sorted(str(path.relative_to(H200)).removesuffix(".json.gz") for path in H200.rglob("*.json.gz"))


def findings(facts):
    return [found for found in hidden_copy.check(facts) if isinstance(found, Finding)]


def test_naive_attention_hides_one_copy_in_masked_fill(facts_of, raw):
    (found,) = findings(facts_of("seeds/naive"))
    events = raw("seeds/naive")["traceEvents"]
    copies = [e for e in events if e.get("cat") == "gpu_memcpy" and e["name"].startswith("Memcpy DtoD")]
    per_call = sum(e["dur"] for e in copies) / 3
    assert (found.scope, found.severity, found.confidence) == ("attn_fwd", "warning", "high")
    assert math.isclose(found.time_at_stake_us, per_call, rel_tol=1e-6)
    assert round(found.time_at_stake_us, 1) == 127.6
    assert "aten::masked_fill" in found.summary
    assert "x.masked_fill_(...)" in found.fix
    cited = [events[position] for position in found.evidence]
    assert [e for e in cited if e.get("cat") == "gpu_memcpy"] == copies
    assert {e["name"] for e in cited if e.get("cat") == "cpu_op"} == {"aten::masked_fill"}


def test_in_place_attention_hides_none(facts_of):
    assert findings(facts_of("seeds/naive_inplace")) == []


def test_copies_of_the_math_fallback_belong_to_it(facts_of):
    assert findings(facts_of("seeds/sdpa_math")) == []
    assert findings(facts_of("ops/gqa_math")) == []
    assert findings(facts_of("ops/fwdbwd_math")) == []  # nor do those of its backward


def test_copies_asked_for_by_name_are_notes_with_their_cost(facts_of, raw):
    """The casts of this trace are round trips, which have their own finding."""
    found = {f.summary.split(",")[0]: f for f in findings(facts_of("faults/dtype_pingpong"))}
    assert set(found) == {"aten::clone"}
    assert {f.severity for f in found.values()} == {"note"}
    low, high = cost_range_us(raw("faults/dtype_pingpong"), found["aten::clone"])
    # small work: the GPU waits for nearly every launch, so that the ops' time on the host goes as well
    assert low + 0.5 * (high - low) < found["aten::clone"].time_at_stake_us < high


def cost_range_us(document, finding):
    """Time a call of the copies cited alone, and with the ops cited on the host."""
    cited = [document["traceEvents"][position] for position in finding.evidence]
    on_gpu = sum(e["dur"] for e in cited if e["cat"] in {"kernel", "gpu_memcpy"})
    on_host = sum(e["dur"] for e in cited if e["cat"] == "cpu_op")
    return on_gpu / 3, (on_gpu + on_host) / 3


def test_an_explicit_contiguous_is_another_finding(facts_of):
    assert findings(facts_of("faults/contiguous_copy")) == []


def test_copies_between_host_and_device_are_not_hidden(facts_of):
    assert findings(facts_of("faults/h2d_pageable")) == []


def test_each_op_gets_its_own_fix(facts_of):
    found = {f.summary.split(" ")[0]: f for f in findings(facts_of("models/llama_eager_prefill"))}
    assert "dtype=" in found["aten::softmax"].cause
    assert "enable_gqa" in found["aten::reshape"].fix
    assert [found[f"aten::{op}"].severity for op in ("softmax", "reshape", "matmul")] == ["warning"] * 3


def test_in_compiled_code_the_addend_of_a_product_is_another_finding(facts_of):
    assert findings(facts_of("ops/matmul_add_4096_compiled")) == []


def test_the_addend_of_addmm_is_named_as_such(raw, facts_from):
    """Constructed: the compiled program's addmm as a program calls it."""
    document = raw("ops/matmul_add_4096_compiled")
    compiled = ("Torch-Compiled Region", "## Call CompiledFxGraph")
    document["traceEvents"] = [
        e for e in document["traceEvents"] if not e.get("name", "").startswith(compiled)
    ]
    (found,) = findings(facts_from(document))
    assert (found.subject, found.severity, found.per_call) == ("aten::addmm", "warning", 1)
    assert "bias" in found.cause


def test_ddp_copies_gradients_back_and_says_how_not_to(facts_of):
    for rank in ("rank0", "rank1"):
        found = [f for f in findings(facts_of(f"ranks/ddp/{rank}")) if f.severity == "warning"]
        assert len(found) == 1
        assert "gradient_as_bucket_view=True" in found[0].fix


def test_copies_of_autograd_are_one_note_that_names_its_nodes(facts_of):
    (found,) = [f for f in findings(facts_of("models/llama_sdpa_train")) if f.scope == "backward"]
    assert found.severity == "note"
    assert "ToCopyBackward0" in found.summary


def nest_casts_in(document, op):
    """Rename the ops in which the recorded casts are, as ``torch.autocast`` nests them."""
    casts = [e for e in document["traceEvents"] if e.get("name") == "aten::to" and e.get("cat") == "cpu_op"]
    for event in casts:
        # the fallback of this trace casts five times a call; put an op around each cast
        document["traceEvents"].append(
            {**event, "name": op, "args": {}, "ts": event["ts"] - 0.2, "dur": event["dur"] + 0.4}
        )
    return document


def test_casts_of_autocast_are_a_note(raw, facts_from):
    """Constructed: the explicit casts of a recorded trace, each inside a linear."""
    (found,) = [
        f
        for f in findings(facts_from(nest_casts_in(raw("ops/naive_fp32"), "aten::linear")))
        if "cast" in f.summary
    ]
    assert found.severity == "note"
    assert found.summary.startswith("torch.autocast casts the inputs of aten::linear")


def test_casts_inside_other_ops_are_hidden(raw, facts_from):
    """Constructed: the explicit casts of a recorded trace, each inside a layer norm."""
    found = {
        f.summary.split(" ")[0]: f
        for f in findings(facts_from(nest_casts_in(raw("ops/naive_fp32"), "aten::layer_norm")))
    }
    assert found["aten::layer_norm"].severity == "warning"
    assert "autocast" in found["aten::layer_norm"].cause


def test_with_stacks_the_line_is_given(facts_of):
    found = {f.subject: f for f in findings(facts_of("models/llama_sdpa_train_stack"))}
    assert found["aten::cat"].summary.endswith("at transformers/models/llama/modeling_llama.py(111): forward")


def test_the_rows_that_a_loop_writes_belong_to_the_loop(facts_of):
    assert findings(facts_of("faults/for_loop_index")) == []


def test_elements_picked_by_index_are_copied(facts_of, raw):
    name = "../h200_patterns/rows_by_index"
    (found,) = findings(facts_of(name))
    picked = [
        e["dur"] for e in raw(name)["traceEvents"] if e.get("cat") == "kernel" and "gather" in e["name"]
    ]
    assert (found.subject, found.severity, found.per_call) == ("aten::index", "note", 1)
    low, high = cost_range_us(raw(name), found)
    assert math.isclose(low, sum(picked[-3:]) / 3, rel_tol=1e-6)
    assert low < found.time_at_stake_us < high
    assert "index with slices" in found.fix


def test_a_reshape_of_a_transposed_tensor_is_hidden(facts_of):
    (found,) = findings(facts_of("../h200_patterns/reshape_of_transposed"))
    assert (found.subject, found.severity, found.per_call) == ("aten::reshape", "warning", 1)


def test_what_autocast_casts_is_a_note_whatever_the_op(facts_of):
    """It calls the op again inside itself with the casts before it: no dtype= was given to softmax."""
    found = {f.subject: f for f in findings(facts_of("../h200_patterns/autocast_training"))}
    assert set(found) == {
        "autograd",
        *(f"autocast in aten::{op}" for op in ("linear", "softmax", "layer_norm")),
    }
    assert {f.severity for f in found.values()} == {"note"}
    assert [found[f"autocast in aten::{op}"].per_call for op in ("linear", "softmax", "layer_norm")] == [
        12,
        4,
        4,
    ]


def test_no_hidden_copy_of_llama_with_sdpa_is_a_memcpy(facts_of):
    """The eager model's are kernels of repeat_kv's reshape, of softmax's cast and of matmul's operands."""
    eager = {f.subject for f in findings(facts_of("models/llama_eager_prefill")) if f.severity == "warning"}
    assert eager == {"aten::reshape", "aten::softmax", "aten::matmul"}
    assert all(f.severity == "note" for f in findings(facts_of("models/llama_sdpa_prefill")))


def test_warnings_over_all_traces(facts_of):
    warned = [name for name in TRACES if any(f.severity == "warning" for f in findings(facts_of(name)))]
    assert warned == [
        "models/llama_eager_prefill",
        "models/llama_sdpa_padded",
        "ops/naive_fp32",
        "ranks/ddp/rank0",
        "ranks/ddp/rank1",
        "seeds/naive",
        "seeds/shapes_naive",
    ]


def test_the_compilers_trial_runs_are_not_the_programs_copies(facts_of):
    assert findings(facts_of("situations/gpt_recompiles")) == []


def test_a_copy_whose_op_is_not_recorded_cannot_be_told(raw, facts_from):
    document = raw("seeds/naive")
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") != "cpu_op"]
    (found,) = hidden_copy.check(facts_from(document))
    assert isinstance(found, CannotTell)
    assert (found.key, found.scope) == ("hidden-copy", "attn_fwd")


def test_a_cpu_trace_has_ops_in_place_of_kernels(raw, facts_from):
    document = raw("seeds/naive")
    cpu = {"cpu_op", "user_annotation", "Trace", None}
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") in cpu]
    document["deviceProperties"] = []
    (found,) = findings(facts_from(document))
    assert (found.id, found.scope) == ("hidden-copy", "attn_fwd")
    assert "CPU time" in found.summary
    assert "masked_fill_" in found.fix


def test_a_gpu_trace_without_its_gpu_activities_says_nothing_of_copies(raw, facts_from):
    document = raw("seeds/naive")
    gone = {"kernel", "gpu_memcpy", "gpu_memset"}
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") not in gone]
    assert list(hidden_copy.check(facts_from(document))) == []
