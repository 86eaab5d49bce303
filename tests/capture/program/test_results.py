"""Results of operations that torch cannot tell without a GPU, held against the CPU's."""

from __future__ import annotations

from typing import Any

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")

OPERANDS = {
    "rows": ((24, 64), (4, 64, 32)),
    "columns": ((4, 32, 64), (64, 24)),
    "slices": ((64, 24), (24, 32)),
    "batches": ((4, 8, 64), (4, 64, 32)),
}


def grouped(first: Any, second: Any) -> Any:
    batches = first.dim() == second.dim() == 3
    ends = None if batches else torch.tensor([6, 6, 18, 24], dtype=torch.int32, device=first.device)
    return torch._grouped_mm(first, second, offs=ends)


@pytest.mark.parametrize("name", list(OPERANDS))
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_grouped_products_lie_as_the_cpu_lays_them(name, dtype):
    pair = [torch.randn(shape, dtype=dtype) for shape in OPERANDS[name]]
    made = grouped(*pair)
    (call,) = [one for one in record_call(grouped, pair).calls if one.op == "aten::_grouped_mm"]
    assert call.outputs[0].shape == made.shape
    assert call.outputs[0].strides == made.stride()


def test_grouped_products_have_a_backward_in_any_type():
    pair = [torch.randn(shape, requires_grad=True) for shape in OPERANDS["rows"]]

    def step() -> None:
        torch.autograd.grad(grouped(*pair).sin().sum(), pair)

    program = record_call(step)
    assert not program.obstacles
    made = [one.outputs[0].shape for one in program.calls if one.op == "aten::_grouped_mm"]
    assert sorted(made) == sorted([(24, 32), *OPERANDS["rows"]])


@pytest.mark.parametrize("axis", [None, 0])
def test_rounded_values_are_followed_into_the_gradient(axis):
    weight, scale, zero = (
        torch.randn(4, 8, requires_grad=True),
        torch.ones(4),
        torch.zeros(4, dtype=torch.int32),
    )

    def step() -> None:
        by_channel = (scale, zero, axis) if axis is not None else (0.1, 0)
        name = "channel" if axis is not None else "tensor"
        made = getattr(torch, f"fake_quantize_per_{name}_affine")(weight, *by_channel, -128, 127)
        (made * made).sum().backward()

    program = record_call(step)
    assert not program.obstacles
    (call,) = [one for one in program.calls if "fake_quantize" in one.op]
    assert [one.dtype for one in call.outputs] == ["fp32", "bool"]
    assert any(
        {one.dtype for one in back.tensors} == {"fp32", "bool"}
        for back in program.calls
        if back.op == "aten::mul"
    )
