"""Operations that ATen composes alike everywhere: what a run on the CPU calls is what is predicted."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.predict.ops import tensor
from tracehunch.predict.ops.call import steps_of

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS, WIDTH = 40, 16
LAUNCHING = (
    "aten::pow", "aten::sum", "aten::mul", "aten::cat", "aten::mm", "aten::clamp_min_", "aten::sqrt_",
    "aten::neg", "aten::mul_", "aten::exp_", "aten::exp", "aten::log1p_", "aten::mean", "aten::add_",
    "aten::div_", "aten::scatter_add_", "aten::eq", "aten::masked_fill_", "aten::copy_", "aten::index_fill_",
    "aten::index_add_", "aten::linalg_vector_norm", "aten::ones_like", "aten::linspace", "aten::div",
    "aten::bmm", "aten::min", "aten::max", "aten::_local_scalar_dense",
    "aten::fill_",
)  # fmt: skip
ONES = ("aten::ones_like", "aten::zeros_like")
"""One fills a tensor each; on the CPU zeros are cleared without an operation of their own."""

x = torch.randn(ROWS, WIDTH, requires_grad=True)
y = torch.randn(ROWS, WIDTH)
at = torch.randint(0, ROWS, (ROWS, WIDTH))
A = tensor((ROWS, WIDTH), "fp32")
INDEX = tensor((ROWS, WIDTH), "int64")

CASES: dict[str, tuple[Callable[[], Any], str, list[Any], dict[str, Any]]] = {
    "distances": (lambda: torch._euclidean_dist(x.detach(), y), "_euclidean_dist", [A, A], {}),
    "soft margin": (
        lambda: torch.nn.functional.soft_margin_loss(x.detach(), y),
        "soft_margin_loss", [A, A], {},
    ),
    "soft margin's gradient": (
        lambda: torch.ops.aten.soft_margin_loss_backward(torch.tensor(1.0), x.detach(), y, 1),
        "soft_margin_loss_backward", [tensor((), "fp32"), A, A], {"reduction": 1},
    ),
    "mean by index": (
        lambda: torch.zeros(ROWS, WIDTH).scatter_reduce_(0, at, y, "mean"),
        "scatter_reduce_", [A, INDEX, A], {"dim": 0, "reduce": "mean"},
    ),
    "largest by index": (
        lambda: torch.zeros(ROWS, WIDTH).scatter_reduce_(0, at, y, "amax"),
        "scatter_reduce_", [A, INDEX, A], {"dim": 0, "reduce": "amax"},
    ),
    "grid": (
        lambda: torch.nn.functional.affine_grid(torch.randn(2, 2, 3), [2, 3, 8, 6], align_corners=False),
        "affine_grid_generator", [tensor((2, 2, 3), "fp32")],
        {"size": (2, 3, 8, 6), "align_corners": False},
    ),
    "grid in space": (
        lambda: torch.nn.functional.affine_grid(torch.randn(2, 3, 4), [2, 3, 8, 6, 4], align_corners=True),
        "affine_grid_generator", [tensor((2, 3, 4), "fp32")],
        {"size": (2, 3, 8, 6, 4), "align_corners": True},
    ),
    "rounded by channel": (
        lambda: torch.fake_quantize_per_channel_affine(
            y, torch.ones(ROWS), torch.zeros(ROWS, dtype=torch.int32), 0, -128, 127
        ),
        "fake_quantize_per_channel_affine_cachemask",
        [A, tensor((ROWS,), "fp32"), tensor((ROWS,), "int32")], {"axis": 0},
    ),
}  # fmt: skip


def called(event: Any) -> Iterator[str]:
    """Name what launches kernels inside an operation, the innermost of a name, without casts of numbers."""
    for child in event.children:
        sizes = [getattr(one, "sizes", ()) for one in child.typed[1].inputs]
        if child.name == "aten::copy_" and not sizes[0]:
            continue
        if child.name in LAUNCHING:
            yield "aten::fill_" if child.name in ONES else child.name
        elif child.name != "aten::to":
            yield from called(child)


def in_a_run(function: Callable[[], Any], name: str) -> Counter[str]:
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, record_shapes=True) as run:
        function()
    waiting = list(run.profiler.kineto_results.experimental_event_tree())
    while waiting:
        event = waiting.pop()
        if event.name == f"aten::{name}":
            return Counter(called(event))
        waiting += event.children
    raise AssertionError(name)


@pytest.mark.parametrize("case", list(CASES))
def test_steps_are_those_of_a_run(case):
    function, name, tensors, options = CASES[case]
    steps = steps_of(name, tensors, options)
    assert Counter(one.op for one in steps if one.op) == in_a_run(function, name)


def test_a_reduction_that_leaves_out_what_is_there_clears_it_first():
    steps = steps_of(
        "index_reduce", [A, tensor((ROWS,), "int64"), A], {"reduce": "amax", "include_self": False}
    )
    assert [one.op for one in steps] == ["aten::copy_", "aten::index_fill_", ""]


def test_a_mask_is_numbered_before_values_are_written():
    mask = tensor((ROWS, 1), "bool").expanded((ROWS, WIDTH))
    steps = steps_of("masked_scatter", [A, mask, A])
    assert [one.text for one in steps if one.op == ""][:3] == [
        "DeviceScanInitKernel", "DeviceScanKernel", "masked_scatter_size_check",
    ]  # fmt: skip
    assert sum(one.op == "aten::copy_" for one in steps) == 2  # the tensor, and the mask, spread out


@pytest.mark.parametrize(
    ("name", "tensors", "made", "kernels"),
    [
        ("pixel_shuffle", [(2, 16, 4, 4)], (2, 4, 8, 8), 1),
        ("max_unpool2d", [(2, 4, 4, 4)], (2, 4, 8, 8), 2),
        ("block_diag", [(2, 3), (4, 5)], (6, 8), 3),
        ("diagonal_copy", [(8, 8)], (8,), 1),
        ("diag_embed", [(4, 8)], (4, 8, 8), 2),
        ("renorm", [(8, 16)], (8, 16), 3),
    ],
)
def test_elements_are_put_elsewhere(name, tensors, made, kernels):
    read = [tensor(shape, "fp32") for shape in tensors]
    steps = steps_of(name, read, {}, None, [tensor(made, "fp32")])
    assert sum(one.kind == "kernel" for one in steps) == kernels


def test_an_empty_buffer_has_no_part():
    steps = steps_of("log_sigmoid_backward", [A, A, tensor((0,), "fp32")])
    assert [one.kind for one in steps] == ["kernel"]
    assert steps[0].bytes == 3 * A.nbytes
