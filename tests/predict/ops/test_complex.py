"""Complex tensors, as of rotary embeddings: element by element they are one kernel each."""

import pytest

from tracehunch.errors import GuessError
from tracehunch.predict.ops import predict_op
from tracehunch.predict.ops.dtypes import stored_word
from tracehunch.predict.ops.tensor import Tensor


def rotated(*shape):
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return Tensor(shape, "complex64", tuple(strides))


def test_a_product_element_by_element_is_one_kernel(h200):
    found = predict_op("aten::mul", (rotated(2, 8, 4), rotated(1, 8, 4)), {}, h200)
    assert found.kernel_count == 1
    assert found.bytes == (64 + 64 + 32) * 8


def test_a_conjugated_copy_is_a_kernel_and_another_is_none(h200):
    assert predict_op("aten::clone", (rotated(8, 4),), {"conjugated": True}, h200).kernel_count == 1
    plain = predict_op("aten::clone", (rotated(8, 4),), {}, h200)
    assert (plain.kernel_count, plain.copies) == (0, ("dtod",))


def test_what_holds_complex_numbers_is_converted_to_them(h200):
    found = predict_op("aten::_to_copy", (Tensor((8, 4), "fp32", (4, 1)),), {"dtype": "complex64"}, h200)
    assert found.kernel_count == 1
    assert found.bytes == 32 * (4 + 8)


def test_other_names_are_errors_as_before():
    assert stored_word("torch.bfloat16") == "bf16"
    with pytest.raises(GuessError, match="not known"):
        stored_word("quint8")
