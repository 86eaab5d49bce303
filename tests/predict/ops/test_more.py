"""Operations of models and optimizers, held against an H200 and against calls of recorded traces."""

import math
from collections import defaultdict
from statistics import mean, median

import pytest

from tracehunch.predict.ops import Tensor, predict_op, tensor
from tracehunch.predict.ops.trees import Node, Outcome, grown, outcome_of

more_ops = pytest.importorskip("more_ops")
fit_convolutions = pytest.importorskip("fit_convolutions")


def test_launches_and_times_of_more_operations(h200, guessed):
    off, inside = defaultdict(list), defaultdict(list)
    for index, one in enumerate(more_ops.measured()):
        if index % 4:
            continue
        said, took = one.predicted(h200), sum(us for _, us in one.activities)
        if said.kernel_count is None:
            assert one.row["op"] == "embedding"
            continue
        assert guessed(said) == one.counts, one.row
        key = one.row["op"], one.direction
        off[key].append(abs(said.time.mid_us / took - 1))
        inside[key].append(said.time.low_us <= took <= said.time.high_us)
    assert len(off) == 19
    assert max(median(values) for values in off.values()) < 0.4
    assert mean(each for values in inside.values() for each in values) > 0.85


@pytest.mark.parametrize(("amounts", "kernels"), [((0, 4), 2), ((0, -4), 1), ((0, -4, 1, 0), 2)])
def test_padding_that_only_takes_away_is_a_copy(amounts, kernels, h200):
    """`constant_pad_nd` of PadNd.cpp: it clones where no amount is above zero."""
    given = tensor((2, 8, 128, 104), "bf16")
    assert predict_op("constant_pad_nd", [given], {"pad": amounts}, h200).kernel_count == kernels


def test_op_calls_of_recorded_traces():
    pytest.importorskip("torch")
    traced_ops = pytest.importorskip("traced_ops")
    names = ("bert", "vit", "llama", "unet", "resnet", "seeds", "gpt")
    paths = [one for one in traced_ops.TRACES.rglob("*.json.gz") if any(word in str(one) for word in names)]
    right = []
    for key, one in traced_ops.alike(paths).items():
        said = one.predicted()
        if said is not None and "conv" not in key[0]:
            right.append(said == one.counts)
    assert len(right) > 300
    assert mean(right) >= 0.98


@pytest.mark.parametrize(("name", "least"), [("plain", 0.76), ("depthwise", 0.86), ("transposed", 0.69)])
def test_convolutions_left_out_of_the_trees(name, least):
    rows = [
        one
        for one in fit_convolutions.measured()
        if fit_convolutions.family(one.call, transposed=one.transposed) == name
    ]
    if name == "plain":  # half of what takes longest
        rows = rows[::2]
        least -= 0.03
    assert fit_convolutions.left_out(rows) >= least


def test_patches_of_an_image(h200, guessed):
    for dtype, channels, expected in (("fp32", 3, (1, 0, 0)), ("bf16", 3, (4, 0, 2)), ("bf16", 8, (4, 0, 0))):
        image, weight = tensor((16, channels, 224, 224), dtype), tensor((768, channels, 16, 16), dtype)
        assert guessed(predict_op("conv2d", (image, weight), {"stride": 16}, h200)) == expected


def test_a_tree_is_read_depth_first():
    rows = [["size", 2], [1, 0, 0.9], ["side", 5], [2, 1, 1], [3, 0, 1]]
    tree = grown({"some": rows})["some"]
    assert isinstance(tree, Node)
    assert outcome_of(tree, {"size": 2, "side": 9}) == Outcome(1, 0, 0.9)
    assert outcome_of(tree, {"size": 3, "side": 5}) == Outcome(2, 1, 1)
    assert outcome_of(tree, {"size": 3, "side": 6}) == Outcome(3, 0, 1)


@pytest.mark.parametrize(
    ("name", "lists", "kernels"),
    [
        ("_foreach_zero_", [10] * 110, 1),
        ("_foreach_zero_", [10] * 111, 2),
        ("_foreach_addcdiv_", [10] * 48 * 3, 1),
        ("_foreach_addcdiv_", [10] * 49 * 3, 2),
        ("_fused_adamw_", [10] * 36 * 4, 1),
        ("_foreach_zero_", [65_536 * 320] * 1, 1),
        ("_foreach_zero_", [65_536 * 320 + 1] * 1, 2),
        ("_foreach_sqrt", [10] * 64, 1),  # results are a second list
        ("_foreach_sqrt", [10] * 65, 2),
    ],
)
def test_a_kernel_takes_so_many_tensors_and_chunks(h200, name, lists, kernels):
    assert predict_op(name, [tensor((size,), "fp32") for size in lists], {}, h200).kernel_count == kernels


ROW, HALF, ONE = tensor((8,), "fp32"), tensor((8,), "bf16"), tensor((), "fp32")
COLUMN = Tensor((4, 4), "fp32", (1, 4))
EVERY_OTHER = Tensor((8,), "fp32", (2,))


@pytest.mark.parametrize(
    ("name", "lists", "options", "kernels"),
    [
        ("_foreach_add_", {"self": [ROW] * 3, "other": [ROW] * 3}, {}, 1),
        ("_foreach_add_", {"self": [ROW] * 3, "other": [HALF] * 3}, {}, 3),
        ("_foreach_div_", {"self": [ROW] * 3, "other": [ONE] * 3}, {}, 3),  # as a capturable AdamW
        (
            "_foreach_mul_",
            {"self": [HALF] * 3},
            {"number": ONE},
            3,
        ),  # as clipping where a model has two dtypes
        ("_foreach_mul_", {"self": [ROW] * 3}, {"number": ONE}, 1),
        ("_foreach_mul_", {"self": [EVERY_OTHER] * 3}, {"scalar": 2.0}, 3),
        ("_foreach_zero_", {"self": [EVERY_OTHER] * 3}, {}, 3),
        ("_foreach_add_", {"self": [COLUMN] * 3, "other": [tensor((4, 4), "fp32")] * 3}, {}, 3),
        ("_foreach_add_", {"self": [COLUMN] * 3, "other": [COLUMN] * 3}, {}, 1),
        ("_foreach_copy_", {"self": [ROW] * 3, "src": [HALF] * 3}, {}, 1),
        ("_foreach_addcmul_", {"self": [ROW] * 3, "tensor1": [ROW] * 3, "tensor2": [ONE] * 3}, {}, 1),
        ("_foreach_add_", {"self": [tensor((8,), "int64")] * 3}, {"scalar": 1}, 1),
        ("_foreach_div", {"self": [tensor((8,), "int64")] * 3}, {"scalar": 2}, 3),
        ("_foreach_norm", {"self": [EVERY_OTHER] * 3}, {}, 3),
    ],
)
def test_lists_that_differ_are_worked_on_one_by_one(h200, name, lists, options, kernels):
    given = [one for tensors in lists.values() for one in tensors]
    lengths = {key: len(tensors) for key, tensors in lists.items()}
    number = [options["number"]] if "number" in options else []
    rest = {key: value for key, value in options.items() if key != "number"}
    found = predict_op(name, [*given, *number], {**rest, "list_lengths": lengths}, h200)
    assert found.kernel_count == kernels


def test_lists_whose_sizes_were_not_recorded_cannot_be_told(h200):
    assert predict_op("aten::_foreach_add_", (), {"scalar": 1}, h200).kernel_count is None


def test_an_optimizer_moves_what_it_reads_and_writes(h200):
    weights = [tensor((1024, 1024), "fp32")] * 4 * 4  # weights, gradients and two moments of four matrices
    found = predict_op("_fused_adamw_", weights, {}, h200)
    assert found.bytes == 7 * 4 * math.prod((1024, 1024)) * 4  # gradients are only read
