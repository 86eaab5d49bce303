"""Each expectation was counted in the raw JSON, or follows from the code that was recorded."""

from pathlib import Path

import pytest

from tracehunch.checks import hidden_copy, layout_copy
from tracehunch.verdict import CannotTell, Finding

H200 = Path(__file__).parents[1] / "data" / "h200"
PATTERNS = "../h200_patterns/"
TRACES = sorted(str(path.relative_to(H200)).removesuffix(".json.gz") for path in H200.rglob("*.json.gz"))


def findings(facts):
    return [found for found in layout_copy.check(facts) if isinstance(found, Finding)]


def kernels(document, *words):
    """Kernels launched in the recorded window whose name has one of the words."""
    events = document["traceEvents"]
    launched = {e["args"]["correlation"] for e in events if e.get("cat") == "cuda_runtime"}
    return [
        e
        for e in events
        if e.get("cat") == "kernel"
        and e["args"]["correlation"] in launched
        and any(word in e["name"] for word in words)
    ]


def test_a_transposed_input_made_contiguous_is_named_with_its_cost(facts_of, raw):
    (found,) = findings(facts_of("faults/contiguous_copy"))
    mine = kernels(raw("faults/contiguous_copy"), "direct_copy_kernel")
    assert (found.id, found.scope, found.subject) == ("layout-copy", "step", "aten::contiguous")
    assert (found.severity, found.confidence, found.per_call) == ("note", "high", 1)
    cited = [raw("faults/contiguous_copy")["traceEvents"][position] for position in found.evidence]
    asked = [e for e in cited if e["cat"] == "cpu_op"]
    assert {e["name"] for e in asked} == {"aten::contiguous"}
    assert found.time_at_stake_us == pytest.approx(cost_us(raw("faults/contiguous_copy"), mine, asked))
    assert f"{sum(e['dur'] for e in mine) / 3:.2f} us" in found.summary


def cost_us(document, copies, asked):
    """Time a call of the copies, and of the gaps before them, as far as the op that makes each lasts.

    Gaps more than twice as long are mostly about other things.
    """
    gpu = sorted(
        (e for e in document["traceEvents"] if e.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}),
        key=lambda e: e["ts"],
    )
    waited = 0.0
    for copy, op in zip(copies, sorted(asked, key=lambda e: e["ts"]), strict=True):
        at = gpu.index(copy)
        begin = min(e["ts"] for e in document["traceEvents"] if e.get("cat") in {"cpu_op", "user_annotation"})
        gap = copy["ts"] - (gpu[at - 1]["ts"] + gpu[at - 1]["dur"] if at else begin)
        launch = next(
            e for e in document["traceEvents"]
            if e.get("cat") == "cuda_runtime" and e["args"]["correlation"] == copy["args"]["correlation"]
        )  # fmt: skip
        behind = copy["ts"] - gap >= launch["ts"] + launch["dur"]  # launched before the gap began
        waited += 0.0 if behind or gap > 2 * op["dur"] else min(gap, op["dur"])
    return (sum(e["dur"] for e in copies) + waited) / 3


def test_without_shapes_too(facts_of):
    (found,) = findings(facts_of(f"{PATTERNS}linear_of_contiguous_no_shapes"))
    assert (found.subject, found.per_call, found.severity) == ("aten::contiguous", 1, "note")


def test_cudnn_converts_around_convolutions_of_nchw(facts_of, raw):
    (found,) = findings(facts_of("situations/unet_nchw"))
    mine = kernels(raw("situations/unet_nchw"), "nchwToNhwcKernel", "nhwcToNchwKernel")
    assert (found.scope, found.severity, found.subject) == ("step", "warning", "aten::conv2d")
    assert found.per_call == len(mine) / 3 == 6
    assert found.time_at_stake_us == pytest.approx(sum(e["dur"] for e in mine) / 3)
    assert "NCHW to NHWC and NHWC to NCHW" in found.summary
    assert "torch.channels_last" in found.fix


def test_a_convolution_whose_operands_differ_in_layout_copies_one(facts_of, raw):
    (found,) = findings(facts_of(f"{PATTERNS}conv_weights_channels_last"))
    mine = kernels(raw(f"{PATTERNS}conv_weights_channels_last"), "direct_copy_kernel")
    assert (found.severity, found.subject, found.per_call) == ("warning", "aten::conv2d", 1)
    asked = [
        e for e in raw(f"{PATTERNS}conv_weights_channels_last")["traceEvents"]
        if e["name"] == "aten::contiguous" and e["dur"] > 5
    ]  # fmt: skip
    expected = cost_us(raw(f"{PATTERNS}conv_weights_channels_last"), mine, asked)
    assert found.time_at_stake_us == pytest.approx(expected)
    assert "torch.channels_last" in found.fix


def renamed_conv1d(document, name):
    """The same convolutions, as if an op of another name had been called on the same inputs."""
    for event in document["traceEvents"]:
        if event.get("name") == "aten::conv1d":
            event["name"] = name
    return document


@pytest.mark.parametrize(
    ("name", "batch", "starts"),
    [
        ("aten::convolution_backward", [8, 256, 1024], "conv1d has no channels_last"),
        (
            "aten::convolution_backward",
            [8, 256, 32, 32],
            "model = model.to(memory_format=torch.channels_last)",
        ),
        (
            "aten::convolution_backward",
            [8, 9, 8, 8, 8],
            "model = model.to(memory_format=torch.channels_last_3d)",
        ),
        ("aten::conv_transpose3d", None, "model = model.to(memory_format=torch.channels_last_3d)"),
    ],
)
def test_the_layout_to_use_goes_by_the_rank_of_the_convolution(raw, facts_from, name, batch, starts):
    document = renamed_conv1d(raw(f"{PATTERNS}conv1d_permuted"), name)
    for event in document["traceEvents"]:
        if event.get("name") == name and batch is not None:
            event["args"]["Input Dims"] = [batch, [256, *batch[1:2], *[3] * (len(batch) - 2)], []]
    found = findings(facts_from(document))
    assert found
    assert all(one.fix.startswith(starts) for one in found)


def test_conv1d_has_no_channels_last(facts_of):
    found = findings(facts_of(f"{PATTERNS}conv1d_permuted"))
    assert [f.subject for f in found] == ["aten::conv1d"] * 2
    assert all(f.fix.startswith("conv1d has no channels_last") for f in found)


@pytest.mark.parametrize(
    "name", ["conv_channels_last", "linear_of_transposed", "reshape_of_transposed", "rows_by_index"]
)
def test_no_layout_is_copied_where_none_has_to_be(facts_of, name):
    """A reshape of a transposed tensor is a hidden copy, not this."""
    assert findings(facts_of(f"{PATTERNS}{name}")) == []


def test_a_clone_that_keeps_the_layout_is_no_change_of_it(facts_of):
    assert findings(facts_of("faults/dtype_pingpong")) == []


def test_warnings_over_all_traces(facts_of):
    warned = [name for name in TRACES if any(f.severity == "warning" for f in findings(facts_of(name)))]
    assert warned == ["situations/unet_nchw"]


def test_notes_over_all_traces(facts_of):
    noted = [name for name in TRACES if any(f.severity == "note" for f in findings(facts_of(name)))]
    assert noted == ["faults/contiguous_copy", "models/llama_eager_prefill"]


@pytest.mark.parametrize(
    "name", [*TRACES, f"{PATTERNS}conv1d_permuted", f"{PATTERNS}conv_weights_channels_last"]
)
def test_nothing_is_both_a_hidden_and_a_layout_copy(facts_of, name):
    trace = facts_of(name).tree.trace
    gpu = set(trace.events(trace.gpu.row))
    hidden = {
        event for f in hidden_copy.check(facts_of(name)) if isinstance(f, Finding) for event in f.evidence
    }
    layout = {event for f in findings(facts_of(name)) for event in f.evidence}
    assert not hidden & layout & gpu


def test_without_ops_the_conversions_of_cudnn_are_known_and_other_copies_are_not(raw, facts_from):
    """Names tell cuDNN's kernels; of a strided copy kernel nobody knows what called it."""
    for name, n in (("situations/unet_nchw", 1), ("faults/contiguous_copy", 0)):
        document = raw(name)
        document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") != "cpu_op"]
        facts = facts_from(document)
        assert len(findings(facts)) == n
        untold = [found for found in layout_copy.check(facts) if isinstance(found, CannotTell)]
        assert [(found.key, found.scope) for found in untold] == [("layout-copy", "step")] * (1 - n)
        assert all(found.reason.startswith("1 copy a call, 30.37 us") for found in untold)
        assert list(hidden_copy.check(facts)) == []


def test_a_trace_without_gpu_activities_says_nothing(raw, facts_from):
    document = raw("situations/unet_nchw")
    gone = {"kernel", "gpu_memcpy", "gpu_memset"}
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") not in gone]
    assert findings(facts_from(document)) == []
