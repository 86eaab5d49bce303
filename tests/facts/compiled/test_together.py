"""Ops merged in one generated kernel, or where each of them is."""

import pytest

from tracehunch.facts.compiled.op_words import alternatives, is_product, plain_word
from tracehunch.facts.compiled.stable import merged_sets
from tracehunch.facts.compiled.together import merged_together


def together(facts, scope, *ops):
    return merged_together(ops, facts.scope(scope).scope, facts.tree)


@pytest.mark.parametrize(
    ("name", "scope", "ops"),
    [
        ("h200/ops/geglu_compiled", "mlp_fwd", ("gelu", "mul")),
        ("h200/ops/geglu_compiled", "mlp_fwd", ("aten::mul", "aten::gelu")),
        ("h200/ops/geglu_compiled", "mlp_fwd", ("_unsafe_view_gelu_mul",)),
        ("h200/ops/naive_compiled", "attn_fwd", ("softmax", "mul", "masked_fill")),
        ("h200/ops/flex_causal", "attn_fwd", ("flex_attention",)),
        ("h200/models/llama_sdpa_compiled", "model_fwd", ("silu", "mul")),
        ("h200/models/llama_sdpa_compiled", "model_fwd", ("embedding", "rsqrt", "mean")),
        ("h200/models/llama_sdpa_compiled", "model_fwd", ("F.rms_norm", "add")),
        ("h200/situations/gpt_recompiles", "step", ("add", "layer_norm")),
        ("h200_compiled/fusion_missed", "broken", ("relu", "add", "mul")),
        ("cpu_compiled/kernels", "glu", ("gelu", "mul")),
        ("cpu_compiled/kernels", "norm", ("layer_norm", "softmax")),
    ],
)
def test_ops_in_one_kernel(facts_of, name, scope, ops):
    found = together(facts_of(name), scope, *ops)
    assert found.holds
    names = {facts_of(name).tree.trace.name_of(row) for row in found.rows}
    assert names
    assert all("fused" in one for one in names)


@pytest.mark.parametrize(
    ("name", "scope", "ops", "seen"),
    [
        (
            "h200_compiled/fusion_missed", "broken", ("gelu", "relu"),
            ("gelu: triton_poi_fused_gelu_mul_0", "relu: triton_poi_fused_add_mul_relu_0"),
        ),
        (
            "h200_compiled/fusion_missed", "rotary", ("gelu", "mul"),
            ("gelu: triton_poi_fused_gelu_view_view_as_complex_0", "mul: aten::mul"),
        ),
        (
            "h200/ops/geglu_eager", "mlp_fwd", ("gelu", "mul"), ("gelu: aten::gelu", "mul: aten::mul"),
        ),
        (
            "h200/ops/geglu_compiled", "mlp_fwd", ("gleu", "mul"),
            ("gleu: not found (did you mean gelu?)", "mul: triton_poi_fused__unsafe_view_gelu_mul_0"),
        ),
        (
            "h200/ops/geglu_compiled", "mlp_fwd", ("linear", "gelu"),
            ("linear: aten::mm", "gelu: triton_poi_fused__unsafe_view_gelu_mul_0"),
        ),
        ("h200_compiled/recompile_limit", "limited", ("gelu", "mul"), ("gelu: aten::gelu", "mul: aten::mul")),
        ("h200/ops/triton_user_kernel", "fused_block", ("gelu",), ("gelu: not found",)),
        (
            "cpu_compiled/kernels", "product", ("linear", "gelu"),
            ("linear: aten::addmm", "gelu: graph_8_cpp_fused_gelu_mul_0"),
        ),
        ("cpu_compiled/kernels", "eager", ("gelu", "mul"), ("gelu: aten::gelu", "mul: aten::mul")),
    ],
)  # fmt: skip
def test_ops_that_are_apart_are_named_where_they_are(facts_of, name, scope, ops, seen):
    found = together(facts_of(name), scope, *ops)
    assert found.holds is False
    assert found.seen == seen


def test_view_is_not_part_of_view_as_complex(facts_of):
    facts = facts_of("h200_compiled/fusion_missed")
    assert together(facts, "rotary", "view_as_complex", "gelu").holds
    assert together(facts, "rotary", "complex").holds is False
    assert together(facts, "rotary", "as", "gelu").holds is False


def test_attention_is_not_merged_in_the_kernel_that_lays_data_out_for_it(facts_of):
    facts = facts_of("h200/models/llama_sdpa_compiled")
    found = together(facts, "model_fwd", "scaled_dot_product_attention", "cos")
    assert found.holds is False
    assert found.seen[0] == "scaled_dot_product_attention: aten::_scaled_dot_product_cudnn_attention"
    assert together(facts, "model_fwd", "bmm", "cos").holds  # of size 1: no library multiplies it


def test_a_name_cut_off_or_without_ops_leaves_it_open(facts_from):
    def kernels(*names):
        launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "dur": 1}
        kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "dur": 1}
        found = []
        for at, name in enumerate(names, 1):
            args = {"correlation": at, "device": 0, "stream": 7}
            found += [
                {**launch, "ts": 10 * at, "args": args},
                {**kernel, "ts": 10 * at + 5, "name": name, "args": args},
            ]
        return facts_from(found)

    assert together(kernels("triton_poi_fused_add_gelu_mu"), "whole", "gelu", "mul").holds is None
    assert together(kernels("triton_poi_fused_add_gelu_mu"), "whole", "abs", "gelu").holds is False
    assert together(kernels("triton_poi_fused_add_gelu_mu"), "whole", "add", "gelu").holds
    assert together(kernels("triton_for_fused_0"), "whole", "add").holds is None
    assert together(kernels("triton_"), "whole", "add").holds is None
    assert together(kernels("triton_tem_fused_addmm_relu_0"), "whole", "linear", "relu").holds
    assert (
        together(kernels("triton_poi_fused_gelu_0", "triton_poi_fused_mul_1"), "whole", "gelu", "mul").holds
        is False
    )


def test_without_the_names_of_loops_a_cpu_trace_cannot_tell(facts_of):
    found = together(facts_of("cpu_compiled/plain"), "glu", "gelu", "mul")
    assert found.holds is None
    assert "enable_kernel_profile" in found.record_with


def test_what_a_baseline_claims_is_computed_merged_and_not_inside_another(facts_of):
    facts = facts_of("h200_compiled/fusion_missed")
    assert merged_sets(facts.scope("broken"), facts.tree) == [("gelu", "mul"), ("add", "mul", "relu")]
    assert merged_sets(facts.scope("disabled"), facts.tree) == []
    facts = facts_of("h200/models/llama_sdpa_compiled")
    claimed = merged_sets(facts.scope("model_fwd"), facts.tree)
    assert ("mul", "silu") in claimed
    assert not any("attention" in op or op == "unsafe_view" for ops in claimed for op in ops)


def test_words_for_ops():
    assert {plain_word(op) for op in ("aten::_softmax", "torch.nn.functional.softmax", "softmax_")} == {
        "softmax"
    }
    assert frozenset({"native_layer_norm"}) in alternatives("layer_norm")
    assert all(is_product(op) for op in ("aten::mm", "F.linear", "conv2d", "_scaled_mm", "flex_attention"))
    assert not any(is_product(op) for op in ("add", "mul", "sum", "softmax"))
