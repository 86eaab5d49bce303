"""Kernels of attention's fast path, and products of narrow data types."""

import pytest

from tracehunch.predict.ops import predict_op, tensor

SCORES = (4, 8, 128, 128)


@pytest.mark.parametrize(
    ("shape", "mask", "kind", "counts"),
    [
        (SCORES, (4, 128), 1, (1, 0)),  # a row of padding for each sequence
        ((128, 8, 128, 128), (128, 128), 1, (1, 0)),  # as many sequences as keys: no other mask
        (SCORES, SCORES, 2, (1, 0)),
        (SCORES, (128, 128), 0, (2, 1)),  # expanded, so not contiguous: copied, filled and normalised
        ((2, 8, 2048, 2048), (2, 2048), 1, (2, 1)),
        ((2, 8, 0, 0), (2, 0), 1, (0, 0)),
    ],
)
def test_a_masked_softmax_is_one_kernel_where_a_warp_holds_a_row(h200, shape, mask, kind, counts):
    given = [tensor(shape, "fp16"), tensor(mask, "bool")]
    found = predict_op("aten::_masked_softmax", given, {"dim": 3, "mask_type": kind}, h200)
    assert (found.kernel_count, found.copy_count) == counts


def test_bias_and_scale_are_one_kernel_over_all_three(h200):
    qkv, bias = tensor((8, 256, 1536), "bf16"), tensor((1536,), "bf16")
    found = predict_op("aten::_transform_bias_rescale_qkv", [qkv, bias], {"num_heads": 8}, h200)
    assert [one.hint for one in found.kernels] == ["transform_bias_rescale_qkv_kernel"]
    assert found.bytes == 2 * qkv.nbytes + bias.nbytes


def product(env, dtype, size=4096):
    a, b = tensor((size, size), dtype), tensor((size, size), dtype, (1, size))
    return predict_op("_int_mm" if dtype == "int8" else "_scaled_mm", [a, b], {}, env)


def test_products_in_bytes_are_one_kernel_and_leave_memsets_open(h200):
    half = predict_op("mm", [tensor((4096, 4096), "bf16")] * 2, {}, h200)
    scaled, whole = product(h200, "fp8"), product(h200, "int8")
    assert scaled.kernel_count == whole.kernel_count == 1
    assert scaled.memsets is None
    assert scaled.flops == whole.flops == half.flops
    assert scaled.time.mid_us < half.time.mid_us
    assert whole.time is None  # the peak in int8 is not among what is known of a GPU


def test_packed_weights_are_read_by_one_kernel_of_unknown_time(h200):
    rows, scales = tensor((8, 256)), tensor((512,))
    found = predict_op("_weight_int8pack_mm", [rows, tensor((512, 256), "int8"), scales], {}, h200)
    assert (found.kernel_count, found.time) == (1, None)
    other = predict_op("_weight_int8pack_mm", [rows.as_type("bf16"), tensor((512, 256), "int8")], {}, h200)
    assert other.kernels is None
