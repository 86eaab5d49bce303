"""How often an elementwise kernel is launched for one operation: pieces that 32-bit offsets can address.

PyTorch's elementwise and reduction kernels count offsets in 32 bits. An operation on a tensor of which an
element lies 2^31 bytes or more from the first is cut in two along the dimension that reaches furthest, and
the halves again, until each piece fits; every piece is a launch. So the score matrix of (2, 32, 4096, 4096)
in fp32, 4 GiB, takes two launches where one would do. Matrix products, softmax and memcpys are not cut.
Source: launches counted on an H200 with torch 2.11, for tensors of 2, 4 and 8 GiB.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from tracehunch.predict.attention.views import Sizes, memory_order
from tracehunch.predict.sdpa.tensor import TensorSpec

_MOST: Final = 2**31 - 1


def pieces(operands: Sequence[TensorSpec]) -> int:
    """Return the launches of one operation over operands of one (broadcast) shape."""
    if all(t.numel * max(t.item_bytes, 1) <= _MOST for t in operands):
        return 1
    shape = operands[0].shape
    strides = [tuple(step * t.item_bytes for step in t.stride) for t in operands]
    order = memory_order(shape, strides)
    return _cut(
        tuple(shape[dim] for dim in order), tuple(tuple(one[dim] for dim in order) for one in strides)
    )


def _merged(shape: Sizes, strides: tuple[Sizes, ...]) -> tuple[Sizes, tuple[Sizes, ...]]:
    """Join neighbouring dimensions that all operands walk through in one stride."""
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for dim, size in enumerate(shape):
        if sizes and (
            size == 1
            or sizes[-1] == 1
            or all(done[-1] * sizes[-1] == one[dim] for done, one in zip(steps, strides, strict=True))
        ):
            if sizes[-1] == 1:
                for done, one in zip(steps, strides, strict=True):
                    done[-1] = one[dim]
            sizes[-1] *= size
            continue
        sizes.append(size)
        for done, one in zip(steps, strides, strict=True):
            done.append(one[dim])
    return tuple(sizes), tuple(tuple(done) for done in steps)


def _cut(shape: Sizes, strides: tuple[Sizes, ...]) -> int:
    return _count(*_merged(shape, strides))


@lru_cache(maxsize=4_096)
def _count(shape: Sizes, strides: tuple[Sizes, ...]) -> int:
    elements = 1
    for size in shape:
        elements *= size
    reach = [sum((size - 1) * step for size, step in zip(shape, one, strict=True)) for one in strides]
    if elements <= _MOST and max(reach) < _MOST:
        return 1
    extents = [max((size - 1) * one[dim] for one in strides) for dim, size in enumerate(shape)]
    furthest = max(range(len(shape)), key=lambda dim: (extents[dim], dim))
    half = shape[furthest] // 2
    return sum(
        _count((*shape[:furthest], size, *shape[furthest + 1 :]), strides)
        for size in (half, shape[furthest] - half)
    )
