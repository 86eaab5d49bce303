"""Products of groups: one kernel on Hopper in bfloat16, else one product a group."""

import pytest

from tracehunch.predict.environment import environment
from tracehunch.predict.ops import predict_op, tensor

ENDS = tensor((4,), "int32")


def operands(dtype, first, second):
    return tensor(first, dtype), tensor(second, dtype), ENDS


@pytest.mark.parametrize(
    ("first", "second"),
    [((96, 64), (4, 64, 32)), ((4, 32, 64), (64, 96)), ((64, 96), (96, 32))],
)
def test_group_after_group_takes_the_ends_to_the_host(h200, a100, first, second):
    for env, dtype in ((h200, "fp32"), (h200, "fp16"), (a100, "bf16")):
        found = predict_op("aten::_grouped_mm", operands(dtype, first, second), {}, env)
        assert [one.algorithm for one in found.kernels].count("gemm") == 4
        assert found.copies == ("dtoh",)
    one = predict_op("aten::_grouped_mm", operands("bf16", first, second), {}, h200)
    assert one.kernel_count == 2
    assert one.copies == ()


def test_work_is_that_of_all_groups_together(h200):
    found = predict_op("aten::_grouped_mm", operands("fp32", (96, 64), (4, 64, 32)), {}, h200)
    assert found.flops == 2 * 96 * 64 * 32
    slices = predict_op("aten::_grouped_mm", operands("fp32", (64, 96), (96, 32)), {}, h200)
    assert slices.flops == found.flops


def test_groups_without_rows_run_nothing_or_zeros(h200):
    found = predict_op("aten::_grouped_mm", operands("fp32", (3, 64), (4, 64, 32)), {}, h200)
    assert found.kernel_count == 3
    slices = predict_op("aten::_grouped_mm", operands("fp32", (64, 3), (3, 32)), {}, h200)
    assert [one.algorithm for one in slices.kernels] == ["gemm"] * 3 + ["fill"]


def test_batches_are_one_product(h200):
    pair = tensor((4, 8, 64), "fp32"), tensor((4, 64, 32), "fp32")
    found = predict_op("aten::_grouped_mm", pair, {}, h200)
    assert (found.kernel_count, found.copies) == (1, ())


def test_before_torch_2_9_only_hopper_does_it():
    found = predict_op("_grouped_mm", operands("fp32", (96, 64), (4, 64, 32)), {}, environment("h200", "2.8"))
    assert found.kernel_count is None
