import pytest

from tracehunch.predict.traced.calls import sdpa_calls
from tracehunch.trace.model import Cat

CALLS = "h200_calls/sdpa_calls"


def by_annotation(tree):
    """Calls by the name of the annotation around them."""
    found = {}
    for call in sdpa_calls(tree):
        around = [row for row in tree.ancestors(call.row) if tree.trace.cat[row] == Cat.USER_ANNOTATION]
        found[tree.trace.name_of(around[0]) if around else "none"] = call
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("h200/ops/gqa_auto", (3, "cudnn", "gpu", False)),
        ("h200/ops/fp32_auto", (3, "efficient", "gpu", False)),
        ("h200/ops/fwdbwd_flash", (3, "flash", "gpu", True)),
        ("h200/ops/fwdbwd_math", (3, "math", "gpu", True)),
        ("h200/models/llama_sdpa_train", (12, "cudnn", "gpu", True)),
        ("h200/seeds/sdpa_flash", (3, "flash", "gpu", False)),
        ("cpu/mha", (4, "flash", "cpu", False)),
        ("cpu/sdpa_dropout", (4, "math", "cpu", False)),
        ("cpu/sdpa_flash", (3, "flash", "cpu", None)),  # gradients on, none made
    ],
)
def test_calls_are_found_with_what_ran_where(tree_of, name, expected):
    calls = sdpa_calls(tree_of(name))
    assert {(len(calls), call.ran, call.place, call.grad) for call in calls} == {expected}
    assert {call.origin for call in calls} == {"program"}


@pytest.mark.parametrize(
    "name", ["h200/ops/gqa_math", "h200/ops/boolmask_auto", "h200/models/llama_sdpa_prefill"]
)
def test_their_time_is_that_of_the_kernels_launched_while_they_ran(tree_of, document, name):
    """Counted another way: activities whose launch, by correlation, lies in time within the call."""
    events = [e for e in document(name)["traceEvents"] if e.get("ph") == "X"]
    hosts = [e for e in events if e["cat"] in ("cuda_runtime", "cuda_driver")]
    launches = {e["args"]["correlation"]: e for e in hosts if "correlation" in e["args"]}
    expected = []
    for call in [e for e in events if e["name"] == "aten::scaled_dot_product_attention"]:
        inside = [
            e["dur"]
            for e in events
            if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")
            and (launch := launches.get(e["args"]["correlation"])) is not None
            and launch["tid"] == call["tid"]
            and call["ts"] <= launch["ts"] < call["ts"] + call["dur"]
        ]
        expected.append((round(sum(inside), 3), round(call["dur"], 3)))
    calls = sdpa_calls(tree_of(name))
    assert sorted((round(call.gpu_us, 3), round(call.cpu_us, 3)) for call in calls) == sorted(expected)
    assert all(len(call.gpu_rows) > 0 for call in calls)


def test_calls_that_torch_compile_only_traces_are_told_from_those_that_its_graphs_make(tree_of):
    calls = sdpa_calls(tree_of("h200/situations/gpt_recompiles"))
    origins = [call.origin for call in calls]
    assert (origins.count("compiled"), origins.count("program")) == (6, 0)
    assert sum(call.origin == "tracing" and call.is_sdpa for call in calls) == 18
    assert all(call.gpu_us is None for call in calls if call.origin == "tracing")
    ran = [call for call in calls if call.origin == "compiled"]
    assert {(call.ran, call.recorded.call.q.shape[0]) for call in ran} == {("cudnn", 2)}
    assert all(call.gpu_us > 0 for call in ran)


def test_autocast_is_asked_with_what_it_cast(tree_of):
    call = by_annotation(tree_of(CALLS))["autocast"]
    assert call.recorded.call.q.dtype == "bfloat16"  # SDPA itself was given float32
    assert call.ran == "cudnn"


def test_gradients_show_in_log_sum_exp_links_and_sequence_numbers(tree_of, changed, document):
    known = by_annotation(tree_of(CALLS))
    kept = {name for name, call in known.items() if call.grad}
    assert {"train", "checkpointed", "mha_train"} <= kept
    assert not {"plain", "inference_mode"} & kept
    assert known["grad_mode_only"].grad is False  # cuDNN was told to keep nothing
    cudnn = "aten::_scaled_dot_product_cudnn_attention"
    no_values = changed(document("h200/ops/fwdbwd_cudnn"), cudnn, **{"Concrete Inputs": None})
    assert {call.grad for call in sdpa_calls(tree_of(no_values))} == {True}  # by the backward


def test_a_trace_without_sdpa_has_no_calls(tree_of):
    assert sdpa_calls(tree_of("h200/seeds/naive")) == ()
    assert sdpa_calls(tree_of("cpu/encoder_eval")) == ()


def test_a_call_that_raised_did_not_get_to_its_end(tree_of):
    calls = by_annotation(tree_of("cpu/sdpa_odd"))
    ends = {name: (call.ran, call.finished) for name, call in calls.items()}
    assert ends["heads_do_not_fit"] == ends["mask_and_causal_in_math"] == ("math", False)
    assert ends["meta"] == ("math", True)
    assert ends["no_queries"] == (None, None)


def test_an_op_called_by_itself_is_not_taken_for_a_compiled_graphs(tree_of):
    calls = by_annotation(tree_of("cpu/sdpa_odd"))
    assert {name for name, call in calls.items() if call.origin == "direct"} == {"nested_jagged"}
    compiled = sdpa_calls(tree_of("h200/models/llama_sdpa_compiled"))
    assert {call.origin for call in compiled} == {"compiled"}


def test_why_nothing_was_read(tree_of, document, changed):
    odd = by_annotation(tree_of("cpu/sdpa_odd"))
    for name in ("nested_jagged", "nested_strided"):
        assert odd[name].recorded is None
        assert "nested tensors" in odd[name].unread
    assert {call.unread for call in sdpa_calls(tree_of("h200/seeds/sdpa_flash"))} == {
        "shapes were not recorded"
    }
    name = "h200/seeds/shapes_sdpa_flash"
    odd_type = changed(document(name), **{"Input type": ["c10::complex<float>"] * 3 + ["", "Scalar"] * 2})
    assert "data type c10::complex<float>" in sdpa_calls(tree_of(odd_type))[0].unread
    few = changed(document(name), **{"Input Dims": [[1]] * 3})
    assert "3 recorded arguments" in sdpa_calls(tree_of(few))[0].unread
    assert {call.unread for call in sdpa_calls(tree_of(name))} == {""}
