import pytest

from tracehunch.errors import GuessError
from tracehunch.predict.environment import environment
from tracehunch.predict.ops import known_ops, predict_op, tensor
from tracehunch.predict.ops.samples import predict_row, sample_names

X = tensor((512, 1024), "bf16")
MASK = tensor((512, 1024), "bool")


@pytest.mark.parametrize(
    "name",
    [
        "view",
        "transpose",
        "expand",
        "aten::slice",
        "aten::select.int",
        "split",
        "unsqueeze",
        "detach",
        "empty_like",
    ],
)
def test_metadata_alone_runs_nothing(h200, name):
    assert predict_op(name, [X], {}, h200).empty


def test_reshape_copies_only_where_strides_demand_it(h200):
    assert predict_op("reshape", [X], {"shape": (1024, -1)}, h200).empty
    assert predict_op("reshape", [X.transposed()], {"shape": (-1,)}, h200).kernel_count == 1


@pytest.mark.parametrize(
    "name", ["aten::softmax", "torch.softmax", "torch.nn.functional.softmax", "softmax", "aten::softmax.int"]
)
def test_names_in_any_spelling(h200, name):
    assert predict_op(name, [X], {"dim": -1}, h200).kernel_count == 1


def test_masked_fill_hides_a_copy_that_its_in_place_form_does_not(h200):
    out_of_place = predict_op("masked_fill", [X, MASK], {}, h200)
    in_place = predict_op("masked_fill_", [X, MASK], {}, h200)
    assert (out_of_place.kernel_count, out_of_place.copies) == (1, ("dtod",))
    assert (in_place.kernel_count, in_place.copies) == (1, ())
    assert out_of_place.time.mid_us > in_place.time.mid_us


def test_few_results_of_much_share_blocks_and_clear_semaphores(h200):
    assert predict_op("sum", [tensor((131_072,), "fp32")], {}, h200).memsets == 1
    assert predict_op("sum", [tensor((130_000,), "fp32")], {}, h200).memsets == 0
    assert predict_op("sum", [tensor((8192, 4096), "fp32")], {"dim": -1}, h200).memsets == 0
    assert predict_op("sum", [tensor((8192, 4096), "fp32")], {"dim": 0}, h200).memsets == 1


def test_softmax_converts_fp16_on_the_way_and_bf16_before(h200):
    half, bfloat = (
        predict_op("softmax", [tensor((8, 64), dtype)], {"dim": -1, "dtype": "fp32"}, h200)
        for dtype in ("fp16", "bf16")
    )
    assert (half.kernel_count, bfloat.kernel_count) == (1, 2)


def test_where_makes_a_number_a_tensor_and_alone_finds_indices(h200):
    assert predict_op("where", [MASK, X], {"other": 0.0}, h200).kernel_count == 2
    assert predict_op("where", [MASK, X, X], {}, h200).kernel_count == 1
    assert predict_op("where", [MASK], {}, h200).copies == ("dtoh",)


def test_a_mask_as_index_waits_for_the_host(h200):
    found = predict_op("index", [X, MASK], {}, h200)
    assert "dtoh" in found.copies
    assert found.kernel_count == 6


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        (X, {"dtype": "bf16"}, (0, 0)),
        (X, {"dtype": "torch.float32"}, (1, 0)),
        (X.transposed(), {"dtype": "bf16", "copy": True}, (0, 1)),
        (X.narrowed(1, 8), {"dtype": "bf16", "copy": True}, (1, 0)),
    ],
)
def test_conversions(h200, source, options, expected):
    found = predict_op("to", [source], options, h200)
    assert (found.kernel_count, found.copy_count) == expected


def test_topk_sets_many_blocks_to_long_lines(h200):
    assert predict_op("topk", [tensor((8, 1024), "bf16")], {"k": 1}, h200).kernel_count == 1
    assert predict_op("topk", [tensor((8, 1024), "bf16")], {"k": 8}, h200).kernel_count == 2
    many = predict_op("topk", [tensor((4096, 4096), "fp32")], {"k": 8}, h200)
    assert (many.kernel_count, many.memsets) == (20, 2)


def test_dropout_outside_training_runs_nothing(h200):
    assert predict_op("dropout", [X], {"training": False}, h200).empty
    assert predict_op("dropout", [X], {"p": 0.1}, h200).kernel_count == 1


def test_nothing_runs_for_no_elements(h200):
    none = tensor((0, 64), "bf16")
    for name in (
        "add",
        "softmax",
        "layer_norm",
        "clone",
        "contiguous",
        "sum",
        "cat",
        "sort",
        "nonzero",
        "gelu",
        "tril",
    ):
        found = predict_op(name, [none], {"dim": -1}, h200)
        assert found.empty or name == "sum", name


def test_unknown_operations_cannot_be_told(h200):
    found = predict_op("aten::frobnicate", [X], {}, h200)
    assert (found.kernel_count, found.copy_count, found.memsets) == (None, None, None)
    assert "frobnicate" in found.reasons[0]
    assert predict_op("unique", [X], {}, h200).kernel_count is None


def test_too_few_tensors_are_an_error(h200):
    with pytest.raises(GuessError, match="needs at least 2"):
        predict_op("masked_fill", [X], {}, h200)
    with pytest.raises(GuessError, match="do not broadcast"):
        predict_op("add", [X, tensor((3,), "bf16")], {}, h200)


def test_other_gpus_and_versions_are_less_certain_and_slower(h200, a100):
    here, there = (predict_op("gelu", [tensor((8192, 8192), "bf16")], {}, env) for env in (h200, a100))
    assert (here.confidence, there.confidence) == ("high", "medium")
    assert there.time.mid_us > 1.8 * here.time.mid_us
    assert here.kernel_count == there.kernel_count == 1


def test_a_cpu_has_no_gpu_activities():
    found = predict_op("softmax", [X], {"dim": -1}, environment(device="cpu", torch="2.13"))
    assert found.empty
    assert "CPU" in found.reasons[0]


def test_counts_need_no_environment():
    found = predict_op("sum", [X], {})
    assert (found.kernel_count, found.memsets, found.time) == (1, 1, None)


def test_lines_of_measurements(h200):
    assert predict_row({"op": "softmax", "rows": 8, "cols": 64, "dtype": "bfloat16"}, h200).kernel_count == 1
    assert predict_row({"kind": "mm", "M": 8, "N": 64, "K": 64, "dtype": "float16"}, h200).kernel_count == 1
    assert predict_row({"op": "frobnicate", "dtype": "float16"}, h200).kernel_count is None
    with pytest.raises(GuessError, match="lacks 'cols'"):
        predict_row({"op": "softmax", "rows": 8, "dtype": "bfloat16"}, h200)


def test_every_sample_is_predicted(h200):
    line = {
        "rows": 64,
        "cols": 128,
        "M": 64,
        "N": 64,
        "K": 64,
        "B": 8,
        "dtype": "bfloat16",
        "C": 8,
        "HW": 8,
        "O": 8,
        "k": 3,
        "stride": 1,
    }
    for name in sample_names():
        found = predict_row({"op": name, **line, "N": 8} if name == "conv2d" else {"op": name, **line}, h200)
        assert found.kernel_count is not None, name


def test_there_are_hundreds_of_operations():
    assert len(known_ops()) > 400
    assert not any("::" in name for name in known_ops())
