"""Pooling and resizing of images: an input, and a result whose size follows from the arguments."""

import math
from collections.abc import Callable
from typing import Final

from tracehunch.facts.work.convolution import convolved_size
from tracehunch.facts.work.inputs import Call, Operand
from tracehunch.facts.work.work import Work, elements, moved, moving

_INDEX_BYTES: Final = 8


def pool(*, dilation: int | None = None, indices: bool = False) -> Callable[[Call], Work]:
    """Return the formula of pooling with window, stride and padding at positions 1 to 3, rounded down."""

    def work(call: Call) -> Work:
        one = call.tensor(0)
        dims = max(len(call.integers(1)), 1)
        windows = call.integers(1)
        steps = call.integers(2) or windows
        edges = call.integers(3) or (0,) * dims
        gaps = (call.integers(dilation) if dilation is not None else ()) or (1,) * dims
        sizes = [
            convolved_size(*part)
            for part in zip(one.shape[-dims:], windows, steps, edges, gaps, strict=False)
        ]
        count = math.prod(one.shape[:-dims]) * math.prod(sizes)
        return moving([moved(one), elements(count, one.dtype), _INDEX_BYTES * count if indices else 0])

    return work


def pool_backward(*, indices: int | None = None) -> Callable[[Call], Work]:
    """Return the formula of a gradient: read the result's, and any indices; write the input's."""

    def work(call: Call) -> Work:
        grad, one = call.tensor(0), call.tensor(1)
        kept = call.optional(indices) if indices is not None else None
        return moving([moved(grad, kept), one.nbytes])

    return work


def resize(call: Call) -> Work:
    """Read the input, and write a result of the size that the second argument states."""
    one = call.tensor(0)
    return moving([moved(one), elements(_resized(one, call), one.dtype)])


def resize_backward(call: Call) -> Work:
    """Read the result's gradient, and write the input's, whose size the third argument states."""
    grad = call.tensor(0)
    return moving([moved(grad), elements(math.prod(call.integers(2)), grad.dtype)])


def _resized(one: Operand, call: Call) -> int:
    sizes = call.integers(1)
    return math.prod(one.shape[: len(one.shape) - len(sizes)]) * math.prod(sizes)
