"""Which ops are attention by hand was read off the traces; times and bytes are counted over the raw JSON."""

import math
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from tracehunch.checks import unfused_attention
from tracehunch.checks._attention_work import attention_by_hand
from tracehunch.checks._score_traffic import score_traffic
from tracehunch.checks._sdpa_time import sdpa_estimate
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.tree import link
from tracehunch.verdict import CannotTell, Finding

DATA = Path(__file__).parents[1] / "data" / "h200"
SPELLINGS = "../h200_by_hand/spellings"
NO_SHAPES = "../h200_by_hand/spellings_no_shapes"
GPT2 = "../h200_by_hand/gpt2_eager_train"
COMPILED = "../h200_by_hand/compiled_train"
MIB = 1 << 20


def findings(facts):
    return [one for one in unfused_attention.check(facts) if isinstance(one, Finding)]


def untold(facts):
    return [one for one in unfused_attention.check(facts) if isinstance(one, CannotTell)]


def gpu_time_between(document, first, last):
    """Sum the GPU time that was launched between two host events of one thread, both included."""
    events = document["traceEvents"]
    start, end = first["ts"], last["ts"] + last["dur"]
    launched = {
        e["args"]["correlation"]
        for e in events
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and start <= e["ts"] <= end
    }
    work = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    return sum(e["dur"] for e in work if e["args"].get("correlation") in launched)


def chains(document):
    """The matmul before each softmax and the one after it, from the ops in order of time."""
    ops = sorted(
        (e for e in document["traceEvents"] if e.get("cat") == "cpu_op"), key=lambda event: event["ts"]
    )
    products = [e for e in ops if e["name"] == "aten::matmul"]
    for softmax in (e for e in ops if e["name"] == "aten::softmax"):
        before = [e for e in products if e["ts"] < softmax["ts"]][-1]
        after = next(e for e in products if e["ts"] > softmax["ts"])
        yield before, after


@pytest.mark.parametrize(
    ("name", "scope", "number"),
    [
        ("models/llama_eager_prefill", "model_fwd", 6),
        ("seeds/naive", "attn_fwd", 1),
        ("seeds/shapes_naive_inplace", "attn_fwd", 1),
        ("ops/naive_fp32", "attn_fwd", 1),
    ],
)
def test_the_chain_is_all_that_runs_between_the_products(facts_of, raw, name, scope, number):
    document, calls = raw(name), 3
    (found,) = findings(facts_of(name))
    spent = sum(gpu_time_between(document, *chain) for chain in chains(document)) / calls
    assert (found.scope, found.severity, found.subject) == (scope, "warning", "aten::_softmax")
    assert found.per_call == number
    parts = attention_by_hand(facts_of(name)).by_hand
    highs = sum(sdpa_estimate(facts_of(name), one).high_us for one in parts) / calls
    assert math.isclose(found.time_at_stake_us, spent - highs, rel_tol=1e-9)
    cited = [document["traceEvents"][position] for position in found.evidence]
    on_gpu = [e for e in cited if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    assert math.isclose(sum(e["dur"] for e in on_gpu) / calls, spent, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("name", "written", "read_back"),
    [
        # product, scale, clone, fill, softmax; then each read by the next, and by the second product
        ("seeds/shapes_naive", [256] * 5, [256] * 5),
        ("seeds/shapes_naive_inplace", [256] * 4, [256] * 4),
        # product, scale, add, cast up, softmax in float32, cast down
        ("models/llama_eager_prefill", [128] * 3 + [256, 256, 128], [128] * 3 + [256, 256, 128]),
        ("ops/naive_fp32", [512] * 5, [512] * 5),
        # one generated kernel between the products
        ("ops/naive_compiled", [256] * 2, [256] * 2),
    ],
)
def test_scores_are_counted_as_they_are_written_and_read(facts_of, name, written, read_back):
    facts = facts_of(name)
    for one in attention_by_hand(facts).by_hand:
        traffic = score_traffic(facts.tree, one)
        assert (traffic.times_written, traffic.times_read) == (len(written), len(read_back))
        assert traffic.written_bytes == sum(written) * MIB
        assert traffic.read_bytes == sum(read_back) * MIB


def test_the_text_says_bytes_time_and_what_to_write(facts_of):
    (found,) = findings(facts_of("models/llama_eager_prefill"))
    assert found.summary.startswith("attention by hand, 6 times a call: 54 GPU activities, 4.708 ms, where ")
    assert "matmul, mul, add, softmax, to, matmul" in found.cause
    assert (
        "64 x 1,024 x 1,024 elements of bfloat16, 128 MiB, written to memory 6 times (1 GiB)" in found.cause
    )
    assert "F.scaled_dot_product_attention(q, k, v, is_causal=True)" in found.fix


FOUND = {"einsum", "baddbmm", "keys_first", "value_late", "where_mask"}
SLOW_ENOUGH_WITHOUT_SHAPES = (FOUND - {"value_late"}) | {"cross"}
NO_ATTENTION = {"dense_moe", "soft_embedding", "topk_router", "linear_attention", "classify", "loss"}


def test_every_spelling_is_recognised_and_no_other_softmax(facts_of):
    facts = facts_of(SPELLINGS)
    assert {one.scope for one in findings(facts)} == FOUND
    rows = np.concatenate([one.rows for one in attention_by_hand(facts).by_hand])
    by_scope = {s.scope.name: {int(row) for call in s.scope.calls for row in call.gpu} for s in facts.scopes}
    recognised = {name for name, mine in by_scope.items() if mine & set(rows.tolist())}
    assert recognised >= FOUND | {"mm2d", "window", "cross", "decode"}
    assert not recognised & NO_ATTENTION
    assert not untold(facts)


def test_without_shapes_order_tells_most_and_the_rest_is_said(facts_of):
    facts = facts_of(NO_SHAPES)
    assert {one.scope for one in findings(facts)} == SLOW_ENOUGH_WITHOUT_SHAPES
    assert {one.confidence for one in findings(facts)} == {"medium"}
    assert [(one.key, one.scope, one.record_with) for one in untold(facts)] == [
        ("unfused-attention", "value_late", "record_shapes=True")
    ]


def test_sizes_are_those_of_the_program(facts_of):
    sizes = {tuple(one.sizes) for one in attention_by_hand(facts_of("seeds/shapes_naive")).by_hand}
    assert sizes == {(128, 1024, 1024, 64, 64)}
    seen = {tuple(one.sizes) for one in attention_by_hand(facts_of(SPELLINGS)).by_hand}
    assert seen == {
        (48, 1024, 1024, 64, 64),
        (1, 2048, 2048, 64, 64),
        (3072, 49, 49, 32, 32),
        (48, 256, 1024, 64, 64),
        (48, 1, 8192, 64, 64),
    }


@pytest.mark.parametrize(
    ("name", "measured", "backward"),
    [
        # GPU time of SDPA for the same inputs, measured on the same kind of machine
        ("seeds/shapes_naive", 58.0, False),
        ("seeds/shapes_naive", 95.0, False),
        ("ops/naive_compiled", 58.0, False),
        (GPT2, 102.3, False),
        (GPT2, 178.9, True),
    ],
)
def test_the_expected_time_holds_what_was_measured(facts_of, name, measured, backward):
    one = attention_by_hand(facts_of(name)).by_hand[0]
    estimate = sdpa_estimate(facts_of(name), one, backward=backward)
    assert estimate.low_us <= measured <= estimate.high_us


def test_the_backward_is_found_through_autograd(facts_of, raw):
    forward, backward = sorted(findings(facts_of(GPT2)), key=lambda one: one.scope, reverse=True)
    assert (forward.scope, backward.scope) == ("forward", "backward")
    assert backward.summary.startswith("the backward of attention by hand, 2 times a call: 26 GPU activities")
    document = raw(GPT2)
    cited = {document["traceEvents"][position].get("ts") for position in backward.evidence}
    kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel" and e["ts"] in cited]
    assert math.isclose(sum(e["dur"] for e in kernels), backward_kernels_us(document), rel_tol=1e-3)


def backward_kernels_us(document):
    """Sum the kernels of the nodes of autograd of which an op has an input of 96 x 1024 x 1024 elements.

    And those of the second product's view, which lays out the gradient of the result.
    """
    events = document["traceEvents"]
    ops = [e for e in events if e.get("cat") == "cpu_op"]
    nodes = [e for e in ops if e["name"].startswith("autograd::engine::evaluate_function")]
    launches = [e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")]
    kernels = defaultdict(float)
    for event in events:
        if event.get("cat") == "kernel":
            kernels[event["args"]["correlation"]] += event["dur"]
    total = 0.0
    for node in nodes:
        start, end, thread = node["ts"], node["ts"] + node["dur"], node["tid"]
        inside = [e for e in ops if e["tid"] == thread and start <= e["ts"] < end]
        large = any(96 * 1024 * 1024 in map(size_of, e["args"].get("Input Dims", [])) for e in inside)
        if large or node["name"].endswith(": UnsafeViewBackward0"):
            mine = [e for e in launches if e["tid"] == thread and start <= e["ts"] < end]
            total += sum(kernels[e["args"].get("correlation")] for e in mine)
    return total


def size_of(dims):
    return math.prod(dims) if dims and all(isinstance(one, int) for one in dims) else 0


def test_in_compiled_code_a_generated_softmax_counts(facts_of):
    (found,) = findings(facts_of("ops/naive_compiled"))
    assert found.severity == "warning"
    assert "bmm, generated softmax kernel, bmm" in found.cause
    (trained,) = findings(facts_of(COMPILED))
    assert trained.summary.startswith("attention by hand, once a call")
    assert "dropout_p=p" in trained.fix


WARNED = {
    *("seeds/naive", "seeds/naive_inplace", "seeds/shapes_naive", "seeds/shapes_naive_inplace"),
    *("ops/naive_fp32", "ops/naive_compiled", "models/llama_eager_prefill"),
}


@pytest.mark.parametrize(
    "path", sorted(DATA.rglob("*.json.gz")), ids=lambda path: path.relative_to(DATA).as_posix()[:-8]
)
def test_no_other_trace_has_one(facts_of, path):
    name = path.relative_to(DATA).as_posix().removesuffix(".json.gz")
    found = findings(facts_of(name))
    assert [one.severity for one in found] == (["warning"] if name in WARNED else [])
    assert not untold(facts_of(name))


def with_mask(document, sizes):
    """Give the mask of the recorded attention other sizes."""
    for event in document["traceEvents"]:
        if event["name"] in ("aten::masked_fill", "aten::masked_fill_"):
            event["args"]["Input Dims"][1] = sizes
    return document


@pytest.mark.parametrize(
    ("sizes", "argument"),
    [
        ([1024, 1024], "is_causal=True"),
        ([8, 1, 1, 1024], "attn_mask=mask"),
        ([8, 1, 1024, 1024], "is_causal=True"),
    ],
)
def test_a_mask_without_queries_is_not_causal(raw, facts_from, sizes, argument):
    """Constructed: the recorded attention with masks of other sizes, as of padding."""
    (found,) = findings(facts_from(with_mask(raw("seeds/shapes_naive"), sizes)))
    assert f"F.scaled_dot_product_attention(q, k, v, {argument})" in found.fix


def test_a_product_that_ignores_its_addend_has_no_mask(raw, facts_from):
    """Constructed: the recorded ``baddbmm`` with ``beta=0``, whose first tensor only gives the sizes."""
    document = raw(SPELLINGS)
    for event in document["traceEvents"]:
        if event["name"] == "aten::baddbmm":
            event["args"]["Concrete Inputs"][3] = "0"
    found = {one.scope: one for one in findings(facts_from(document))}
    assert "F.scaled_dot_product_attention(q, k, v)" in found["baddbmm"].fix


def test_types_without_a_fused_kernel_are_no_finding(raw, facts_from):
    """Constructed: the recorded attention in float64."""
    document = raw("seeds/shapes_naive")
    for event in document["traceEvents"]:
        types = event.get("args", {}).get("Input type")
        if types:
            event["args"]["Input type"] = ["double" if kind == "c10::BFloat16" else kind for kind in types]
    assert findings(facts_from(document)) == []


def test_on_an_unknown_gpu_the_products_own_time_is_the_measure(raw, facts_from):
    """Constructed: the recorded attention on a GPU that no table has."""
    document = raw("seeds/shapes_naive")
    document["deviceProperties"][0]["name"] = "NVIDIA X900"
    (found,) = findings(facts_from(document))
    kernels = [e for e in document["traceEvents"] if e.get("cat") == "kernel"]
    products = [e["dur"] for e in kernels if e["name"].startswith("nvjet")]
    spent = [gpu_time_between(document, *chain) for chain in chains(document)]
    expected = sum(spent) / 3 - 2.0 * sum(products) / 3  # some products were launched before the window
    assert found.confidence == "medium"
    assert found.time_at_stake_us >= expected - 1e-6
    assert "its own matrix products" in found.cause


@pytest.mark.parametrize(
    ("name", "scopes"),
    [
        *(("handattn", ["forward"]), ("naive", ["attn_fwd"]), ("sdpa_math", []), ("sdpa_flash", [])),
        *(("encoder_eval", []), ("mha", []), ("train_mlp", [])),
    ],
)
def test_on_a_cpu_too(cpu, name, scopes):
    found = findings(measure(link(read(cpu / f"{name}.json.gz"))))
    assert [one.scope for one in found] == scopes
    assert not any("expected to take 0 us" in one.summary for one in found)
