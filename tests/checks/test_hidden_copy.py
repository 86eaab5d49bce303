"""Each expectation was counted in the raw JSON, or follows from the op that the recorded script calls."""

import math

from tracehunch.checks import hidden_copy, run
from tracehunch.verdict import CannotTell, Finding


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


def test_copies_asked_for_by_name_are_notes_with_their_cost(facts_of, raw):
    found = {f.summary.split(",")[0]: f for f in findings(facts_of("faults/dtype_pingpong"))}
    assert set(found) == {"aten::to", "aten::clone"}
    assert {f.severity for f in found.values()} == {"note"}
    copies = [
        e for e in raw("faults/dtype_pingpong")["traceEvents"] if e.get("name", "").startswith("Memcpy DtoD")
    ]
    assert math.isclose(
        found["aten::clone"].time_at_stake_us, sum(e["dur"] for e in copies) / 3, rel_tol=1e-6
    )


def test_an_explicit_contiguous_is_a_note(facts_of):
    (found,) = findings(facts_of("faults/contiguous_copy"))
    assert (found.severity, found.summary.split(",")[0]) == ("note", "aten::contiguous")


def test_copies_between_host_and_device_are_not_hidden(facts_of):
    assert findings(facts_of("faults/h2d_pageable")) == []


def test_each_op_gets_its_own_fix(facts_of):
    found = {f.summary.split(" ")[0]: f for f in findings(facts_of("models/llama_eager_prefill"))}
    assert "dtype=" in found["aten::softmax"].cause
    assert "enable_gqa" in found["aten::reshape"].fix
    assert [found[f"aten::{op}"].severity for op in ("softmax", "reshape", "matmul")] == ["warning"] * 3


def test_the_bias_of_addmm_is_named_as_such(facts_of):
    (found,) = findings(facts_of("ops/matmul_add_4096_compiled"))
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
    (found,) = findings(facts_of("faults/for_loop_index"))
    assert found.summary.endswith("at capture.py(265): loopidx")


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
    (found,) = run(facts_from(document)).findings
    assert (found.id, found.scope) == ("hidden-copy", "attn_fwd")
    assert "CPU time" in found.summary
    assert "masked_fill_" in found.fix


def test_a_gpu_trace_without_its_gpu_activities_says_nothing_of_copies(raw, facts_from):
    document = raw("seeds/naive")
    gone = {"kernel", "gpu_memcpy", "gpu_memset"}
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") not in gone]
    assert list(hidden_copy.check(facts_from(document))) == []
