"""FLOPs of products and convolutions, against torch.utils.flop_counter; work that shapes do not tell."""

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.facts.work import Call, NotRecorded, Operand, Work, call_of, work_of

if TYPE_CHECKING:
    from tracehunch.facts.work.inputs import Input

torch = pytest.importorskip("torch")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402  # after the check that torch is there

PRODUCTS = {
    "aten::mm": ((7, 5), (5, 3)),
    "aten::bmm": ((4, 7, 5), (4, 5, 3)),
    "aten::addmm": ((3,), (7, 5), (5, 3)),
    "aten::baddbmm": ((4, 7, 3), (4, 7, 5), (4, 5, 3)),
    "aten::mv": ((7, 5), (5,)),
    "aten::dot": ((5,), (5,)),
    "aten::addmv": ((7,), (7, 5), (5,)),
    "aten::matmul": ((2, 1, 7, 5), (3, 5, 4)),
    "aten::linear": ((2, 7, 5), (3, 5), (3,)),
}


def counted(function: Any, *args: Any, **kwargs: Any) -> int:
    with FlopCounterMode(display=False) as counter:
        function(*args, **kwargs)
    return counter.get_total_flops()


def of(*shapes: tuple[int, ...], dtype: str = "bf16") -> tuple[Operand, ...]:
    return tuple(Operand(shape, dtype) for shape in shapes)


@pytest.mark.parametrize("name", sorted(PRODUCTS))
def test_products_are_as_torch_counts_them(name: str) -> None:
    shapes = PRODUCTS[name]
    function = {"linear": torch.nn.functional.linear}.get(name[6:]) or getattr(torch, name[6:])
    # the counter knows neither mv nor dot: their FLOPs are those of the product with a matrix of one column
    vectors = {
        "aten::mv": (torch.mm, [(7, 5), (5, 1)]),
        "aten::dot": (torch.mm, [(1, 5), (5, 1)]),
        "aten::addmv": (torch.addmm, [(7, 1), (7, 5), (5, 1)]),
    }
    function, sizes = vectors.get(name, (function, shapes))
    expected = counted(function, *(torch.empty(size, device="meta") for size in sizes))
    assert work_of(Call(name, of(*shapes))).flops == expected > 0


def conv(**changes: Any) -> dict[str, Any]:
    return {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, **changes}


CONVOLUTIONS = [
    conv(), conv(stride=2, padding=1), conv(dilation=2, padding=2), conv(groups=4), conv(groups=8, padding=1),
]  # fmt: skip


@pytest.mark.parametrize("given", CONVOLUTIONS)
@pytest.mark.parametrize("transposed", [False, True])
def test_convolutions_forward_and_backward(given: dict[str, Any], transposed: bool) -> None:
    groups = given["groups"]
    shape = (8, 16 // groups, 3, 3) if transposed else (16, 8 // groups, 3, 3)
    one = torch.empty(2, 8, 14, 11, device="meta", requires_grad=True)
    weight = torch.empty(shape, device="meta", requires_grad=True)
    run = torch.nn.functional.conv_transpose2d if transposed else torch.nn.functional.conv2d
    with FlopCounterMode(display=False) as counter:
        out = run(one, weight, None, **given)
        forward = counter.get_total_flops()
        out.sum().backward()
    both = counter.get_total_flops()
    lists = [f"[{given[key]}, {given[key]}]" for key in ("stride", "padding", "dilation")]
    inputs = [*of(tuple(one.shape), tuple(weight.shape)), None]
    values = ("", "", "", *lists, str(transposed), "[0, 0]", str(groups))
    found = work_of(Call("aten::convolution", (*inputs, *[None] * 6), values))
    assert found.flops == forward > 0
    assert found.bytes == 2 * (one.numel() + weight.numel() + out.numel())
    grad = of(tuple(out.shape))
    values = ("", "", "", "", *lists, str(transposed), "[0, 0]", str(groups), "[True, True, False]")
    back = work_of(Call("aten::convolution_backward", (*grad, *inputs, *[None] * 7), values))
    # torch's counter takes the gradient of the weight as if there were one group
    assert back.flops == (both - forward if groups == 1 else 2 * forward)
    assert back.bytes == 2 * (out.numel() + 2 * one.numel() + 2 * weight.numel())


def test_the_libraries_convolutions_take_their_arguments_in_another_order() -> None:
    one, weight = of((16, 128, 128, 128), (256, 128, 3, 3))
    rest: tuple[Input, ...] = (None,) * 7
    cudnn = Call(
        "aten::cudnn_convolution", (one, weight, *rest), ("", "", "[1, 1]", "[2, 2]", "[1, 1]", "1", "False")
    )
    miopen = Call(
        "aten::miopen_convolution", (one, weight, *rest), ("", "", "", "[1, 1]", "[2, 2]", "[1, 1]", "1")
    )
    assert work_of(cudnn).flops == work_of(miopen).flops == 2 * 16 * 256 * 64 * 64 * 128 * 9


def test_scaled_products_have_a_result_of_the_stated_type() -> None:
    a, b, scale = Operand((64, 32), "fp8-e4m3"), Operand((32, 48), "fp8-e4m3", (1, 32)), Operand((1,), "fp32")
    call = Call("aten::_scaled_mm", (a, b, scale, scale, None, None, None, None), ("",) * 6 + ("15", "False"))
    assert work_of(call) == Work(2 * 64 * 32 * 48, 64 * 32 + 32 * 48 + 8 + 2 * 64 * 48, "fp8-e4m3")


def test_groups_of_rows_meet_a_matrix_each() -> None:
    rows, experts, ends = Operand((100, 32), "bf16"), Operand((4, 32, 48), "bf16"), Operand((4,), "int32")
    call = Call("aten::_grouped_mm", (rows, experts, ends, None, None))
    assert work_of(call).flops == 2 * 100 * 32 * 48


@pytest.mark.parametrize("beta", ["1", "0"])
def test_what_beta_leaves_out_is_not_read(beta: str) -> None:
    call = Call("aten::baddbmm", (*of((4, 7, 3), (4, 7, 5), (4, 5, 3)), None, None), ("", "", "", beta, "1"))
    assert work_of(call).bytes == 2 * 4 * (7 * 5 + 5 * 3 + 7 * 3 + (7 * 3 if beta == "1" else 0))


def test_expanded_dimensions_are_read_once() -> None:
    mask = Operand((8, 16, 4, 4), "bool", (0, 0, 4, 1))
    scores = Operand((8, 16, 4, 4), "bf16")
    assert work_of(Call("aten::masked_fill_", (scores, mask, None))).bytes == 2 * 2 * scores.numel + 16
    windows = Operand((7, 4), "fp32", (1, 1))  # overlapping: 10 elements in memory
    assert work_of(Call("aten::exp", (windows,))).bytes == 4 * (10 + 28)


@pytest.mark.parametrize(
    "call",
    [
        Call("flash_attn::_flash_attn_forward", of((2, 8, 4, 16))),
        Call("aten::mm", ()),
        Call("aten::mm", (Operand((4, 5), "bf16"), None)),
        Call("aten::mm", of((4, 5), (6, 7))),
        Call("aten::bmm", of((4,), (4,))),
        Call("aten::cat", (of((4, 5), (4, 5), dtype="uint8"), None)),  # of a type that was not recorded
        Call("aten::cat", ((), None)),  # more tensors than the profiler lists
        Call("aten::_foreach_add_", (None, None)),
        Call("aten::cudnn_convolution", of((2, 8, 9, 9), (4, 8, 3, 3))),  # before PyTorch 2.1: no arguments
        Call("aten::topk", of((5, 6)), ("", "9999999999999999999999")),
        Call("aten::add", of((3,), (4,))),
        Call("aten::upsample_nearest2d", of((2, 8, 9, 9)), ("", "[-1, 5]")),
        Call("aten::mm", of((1 << 40, 1 << 40), (1 << 40, 1 << 40))),
        Call("aten::native_group_norm", of((2,), (2,), (2,)), ("", "", "", "x", "", "", "")),
    ],
)
def test_what_is_not_recorded_is_not_guessed(call: Call) -> None:
    with pytest.raises(NotRecorded):
        work_of(call)


ODD = (
    None,
    5,
    "x",
    [],
    [[]],
    [[2, 3]],
    [["a"]],
    [[-1, 2]],
    [[True]],
    {"a": 1},
    [[1e300]],
    [[10**30, 10**30]],
)


TYPES = (None, [], ["float"], [3], "float")


@pytest.mark.parametrize(("dims", "types"), list(itertools.product(ODD, TYPES)))
def test_odd_inputs_break_nothing(dims: Any, types: Any) -> None:
    for name in ("aten::mm", "aten::add", "aten::sum", "aten::_softmax", "aten::copy_", "aten::cat"):
        call = call_of(name, dims, types, dims, dims)
        try:
            work = work_of(call)
        except NotRecorded:
            continue
        assert (work.flops or 0) >= 0
