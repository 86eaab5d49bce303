import pytest

from tracehunch.predict.traced.recorded import SDPA, recorded_call

Q = [2, 8, 128, 64]
STRIDES = [65536, 8192, 64, 1]


def args(dims=(Q, Q, Q, [], [], [], [], []), types=None, stated=None, **others):
    types = ["c10::Half"] * 3 + ["", "Scalar", "Scalar", "", "Scalar"] if types is None else types
    stated = ["", "", "", "", "0.", "False", "", "False"] if stated is None else stated
    return {
        "Input Dims": [list(one) for one in dims],
        "Input type": types,
        "Input Strides": [STRIDES] * 3 + [[]] * (len(dims) - 3),
        "Concrete Inputs": stated,
    } | others


def without(key, **others):
    given = args(**others)
    del given[key]
    return given


def test_every_argument_is_read():
    mask = [1, 1, 128, 128]
    given = args(
        dims=(Q, [2, 2, 128, 64], [2, 2, 128, 32], mask, [], [], [], []),
        types=["c10::BFloat16"] * 3 + ["bool", "Scalar", "Scalar", "Scalar", "Scalar"],
        stated=["", "", "", "", "0.10000000000000001", "True", "0.5", "True"],
    )
    found = recorded_call(SDPA, given)
    call = found.call
    assert (call.q.shape, call.k.shape, call.v.shape) == ((2, 8, 128, 64), (2, 2, 128, 64), (2, 2, 128, 32))
    assert (call.q.dtype, call.q.stride) == ("bfloat16", tuple(STRIDES))
    assert (call.mask.shape, call.mask.dtype) == ((1, 1, 128, 128), "bool")
    assert (call.dropout, call.is_causal, call.scale, call.enable_gqa) == (0.1, True, 0.5, True)
    assert found.open == ()


def test_without_values_flags_stay_open_and_each_reading_is_tried():
    found = recorded_call(SDPA, without("Concrete Inputs"))
    assert found.open == ("is_causal", "dropout", "enable_gqa")
    readings = found.alternatives()
    assert len(readings) == 8
    assert readings[0] == found.call
    assert {(one.is_causal, one.dropout > 0, one.enable_gqa) for one in readings} == {
        (causal, dropout, gqa)
        for causal in (False, True)
        for dropout in (False, True)
        for gqa in (False, True)
    }


def test_before_torch_2_5_there_was_no_grouping_to_leave_open():
    dims = (Q, Q, Q, [], [], [], [])
    found = recorded_call(SDPA, without("Concrete Inputs", dims=dims))
    assert "enable_gqa" not in found.open


def test_strides_that_were_not_recorded_are_taken_to_be_contiguous_and_said():
    found = recorded_call(SDPA, without("Input Strides"))
    assert found.open == ("strides",)
    assert found.call.q.stride == tuple(STRIDES)


@pytest.mark.parametrize(
    "given",
    [
        {},
        without("Input Dims"),
        without("Input type"),
        args(types=["c10::complex<float>"] * 3 + [""] * 5),
        args(dims=([], [], [], [], [], [], [], [])),  # nested tensors
        args(dims=([2, 8, "s0", 64], Q, Q, [], [], [], [], [])),
        args(dims=(Q, Q, Q, [128, 128], [], [], [], []), types=["float"] * 3 + ["c10::qint8"] + [""] * 4),
        args(dims=(Q, Q, Q)),
    ],
)
def test_what_makes_no_call_is_none(given):
    assert recorded_call(SDPA, given) is None


def test_a_backends_op_tells_the_same_by_its_own_positions():
    cudnn = recorded_call(
        "aten::_scaled_dot_product_cudnn_attention",
        args(
            dims=(Q, [2, 2, 128, 64], [2, 2, 128, 64], [128, 128], [], [], [], [], []),
            types=["c10::Half"] * 4 + ["Scalar"] * 4 + [""],
            stated=["", "", "", "", "True", "0.5", "True", "False", "0.25"],
        ),
    ).call
    assert (cudnn.dropout, cudnn.is_causal, cudnn.scale) == (0.5, True, 0.25)
    assert cudnn.mask.shape == (128, 128)
    assert cudnn.enable_gqa  # it has no such argument, yet took other heads
    flash = recorded_call(
        "aten::_scaled_dot_product_flash_attention",
        args(dims=(Q, Q, Q, [], [], [], []), stated=["", "", "", "0.", "True", "False", "0.125"]),
    ).call
    assert (flash.dropout, flash.is_causal, flash.scale, flash.mask) == (0.0, True, 0.125, None)
    assert not flash.enable_gqa


def test_other_ops_and_other_schemas_are_none():
    assert recorded_call("aten::softmax", args()) is None
    old = args(dims=(Q, Q, Q, [], [], [], []), stated=["", "", "", "0.", "True", "False", ""])
    assert recorded_call("aten::_scaled_dot_product_cudnn_attention", old) is None  # torch 2.4


def test_a_gradient_that_is_not_known_is_a_reading():
    plain = recorded_call(SDPA, args())
    assert [call.requires_grad for call in plain.with_grad(None).alternatives()] == [False, True]
    assert [call.requires_grad for call in plain.with_grad(grad=True).alternatives()] == [True]
    (off,) = plain.with_grad(grad=False).alternatives()
    assert not off.requires_grad
    assert not off.grad_enabled


def test_a_mask_of_numbers_may_be_learnt_where_there_are_gradients():
    types = ["float"] * 4 + ["Scalar", "Scalar", "", "Scalar"]
    masked = recorded_call(SDPA, args(dims=(Q, Q, Q, [128, 128], [], [], [], []), types=types))
    assert [call.mask.requires_grad for call in masked.with_grad(grad=True).alternatives()] == [False, True]
    assert [call.mask.requires_grad for call in masked.with_grad(grad=False).alternatives()] == [False]
