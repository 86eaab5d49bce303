"""Convolutions, forward, transposed and backward, by any library."""

import math
from collections.abc import Callable, Sequence

from tracehunch.facts.work.inputs import Call, NotRecorded, Operand
from tracehunch.facts.work.work import Work, elements, moved


def convolved_size(size: int, window: int, stride: int, padding: int, dilation: int = 1) -> int:
    """Return how many positions a window has along one dimension."""
    return max(0, (size + 2 * padding - dilation * (window - 1) - 1) // stride + 1)


def convolution_flops(positions: int, weight_numel: int, channels: int) -> int:
    """Return the FLOPs of a convolution: a multiply and an add as two.

    ``positions`` are elements of the output, ``channels`` the weight's first dimension (output channels); of
    a transposed one they are elements of the input, and input channels. Groups are in the weight's size.
    """
    return 2 * positions * weight_numel // channels if channels else 0


def forward(stride: int, padding: int, dilation: int, *, bias: int | None = None) -> Callable[[Call], Work]:
    """Return the formula of a convolution whose arguments stand at these positions."""

    def work(call: Call) -> Work:
        one, weight = call.tensor(0), call.tensor(1)
        out = _output(one, weight, call.integers(stride), call.integers(padding), call.integers(dilation))
        flops = convolution_flops(out, weight.numel, weight.shape[0])
        read = moved(one, weight, None if bias is None else call.optional(bias))
        return Work(flops, read + elements(out, one.dtype), one.dtype)

    return work


def convolution(call: Call) -> Work:
    """Work of ``convolution``, transposed or not, where one kernel does it all."""
    return transposed(3, 4, 5, 7, groups=8)(call) if call.flag(6) else forward(3, 4, 5, bias=2)(call)


def transposed(
    stride: int, padding: int, dilation: int, output_padding: int, *, groups: int
) -> Callable[[Call], Work]:
    """Return the formula of a transposed convolution whose arguments stand at these positions."""

    def work(call: Call) -> Work:
        one, weight = call.tensor(0), call.tensor(1)
        dims = len(one.shape) - 2
        windows = weight.shape[2:]
        steps, edges, gaps, more = (
            _each(call.integers(at), dims) for at in (stride, padding, dilation, output_padding)
        )
        sizes = [
            (size - 1) * step - 2 * edge + gap * (window - 1) + extra + 1
            for size, step, edge, gap, window, extra in zip(
                one.shape[2:], steps, edges, gaps, windows, more, strict=True
            )
        ]
        flops = convolution_flops(one.numel, weight.numel, weight.shape[0])
        out = one.shape[0] * weight.shape[1] * call.integer(groups) * math.prod(sizes)
        return Work(flops, moved(one, weight) + elements(out, one.dtype), one.dtype)

    return work


def backward(call: Call) -> Work:
    """Gradients of input and weight, each as costly as the forward, and of the bias, as far as asked for."""
    grad, one, weight = call.tensor(0), call.tensor(1), call.tensor(2)
    of_input, of_weight, of_bias = call.flags(10)[:3]
    positions = one.numel if call.flag(7) else grad.numel
    flops = convolution_flops(positions, weight.numel, weight.shape[0]) * (of_input + of_weight)
    moves = moved(grad)
    moves += moved(weight) + one.nbytes if of_input else 0
    moves += moved(one) + weight.nbytes if of_weight else 0
    moves += elements(grad.shape[1], grad.dtype) if of_bias else 0
    return Work(flops, moves, grad.dtype)


def _output(
    one: Operand, weight: Operand, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int]
) -> int:
    """Return the elements of the output."""
    dims = len(one.shape) - 2
    if dims < 1 or len(weight.shape) != len(one.shape):
        raise NotRecorded(f"shapes {list(one.shape)} and {list(weight.shape)} are none of a convolution")
    parts = zip(
        one.shape[2:], weight.shape[2:], _each(stride, dims), _each(padding, dims), _each(dilation, dims),
        strict=True,
    )  # fmt: skip
    return one.shape[0] * weight.shape[0] * math.prod(convolved_size(*part) for part in parts)


def _each(values: Sequence[int], dims: int) -> tuple[int, ...]:
    """Return one number for each dimension; one may stand for all."""
    if len(values) not in (1, dims):
        raise NotRecorded("the arguments of a convolution were not recorded")
    return tuple(values) if len(values) == dims else tuple(values) * dims
