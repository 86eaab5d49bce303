"""A tensor as far as kernels depend on it: shape, data type, strides and offset."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from tracehunch.errors import GuessError
from tracehunch.predict.ops.dtypes import dtype_word, size_of


@dataclass(frozen=True, slots=True)
class Tensor:
    """Strides and offset count elements; make one with `tensor`."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def numel(self) -> int:
        """Number of elements, repeated ones counted each time."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return size_of(self.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel * self.itemsize

    @property
    def stored_bytes(self) -> int:
        """Bytes of the elements in memory: expanded dimensions are there once."""
        sizes = (size for size, stride in zip(self.shape, self.strides, strict=True) if stride != 0)
        return math.prod(sizes) * self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Whether elements lie in row-major order, as `Tensor.is_contiguous` says."""
        expected = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != expected:
                return self.numel == 0
            expected *= size
        return True

    @property
    def is_dense(self) -> bool:
        """Whether the elements fill their memory, each once, in whatever order of dimensions."""
        expected = 1
        for stride, size in sorted(
            (st, si) for si, st in zip(self.shape, self.strides, strict=True) if si != 1
        ):
            if stride != expected:
                return False
            expected *= size
        return True

    def size(self, dim: int) -> int:
        """Return the size of a dimension, counted from the end where negative; 1 for a scalar."""
        return self.shape[dim] if self.shape else 1

    def permuted(self, order: Sequence[int]) -> Self:
        """Return the view with dimensions in another order."""
        order = [dim % len(self.shape) for dim in order]
        return replace(
            self,
            shape=tuple(self.shape[dim] for dim in order),
            strides=tuple(self.strides[dim] for dim in order),
        )

    def transposed(self, first: int = -2, second: int = -1) -> Self:
        """Return the view with two dimensions exchanged."""
        order = list(range(len(self.shape)))
        order[first], order[second] = order[second], order[first]
        return self.permuted(order)

    def expanded(self, shape: Sequence[int]) -> Self:
        """Return the view that repeats dimensions of size 1 (and new ones in front) to a shape."""
        lead = len(shape) - len(self.shape)
        old = (1,) * lead + self.shape
        strides = (0,) * lead + self.strides
        pairs = zip(shape, old, strides, strict=True)
        moved = tuple(stride if size == before else 0 for size, before, stride in pairs)
        return replace(self, shape=tuple(shape), strides=moved)

    def narrowed(self, dim: int, size: int, start: int = 0) -> Self:
        """Return the view of a range of one dimension."""
        dim %= len(self.shape)
        shape = (*self.shape[:dim], size, *self.shape[dim + 1 :])
        return replace(self, shape=shape, offset=self.offset + start * self.strides[dim])

    def selected(self, dim: int, index: int = 0) -> Self:
        """Return the view of one index of a dimension, which it leaves out."""
        dim %= len(self.shape)
        shape = self.shape[:dim] + self.shape[dim + 1 :]
        strides = self.strides[:dim] + self.strides[dim + 1 :]
        index %= max(self.shape[dim], 1)
        return replace(self, shape=shape, strides=strides, offset=self.offset + index * self.strides[dim])

    def as_type(self, dtype: str) -> Self:
        """Return a tensor of the same layout and another data type."""
        return replace(self, dtype=dtype, offset=0)

    def viewed(self, shape: Sequence[int]) -> Self | None:
        """Return the view of another shape, `None` where only a copy can have it."""
        if math.prod(shape) != self.numel:
            raise GuessError(f"a tensor of shape {self.shape} has no view of shape {tuple(shape)}")
        groups: list[tuple[int, int]] = []  # size and innermost stride of dimensions that run on
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size == 1:
                continue
            if groups and groups[-1][1] == size * stride:
                groups[-1] = (groups[-1][0] * size, stride)
            else:
                groups.append((size, stride))
        strides: list[int] = []
        left, inner = groups.pop() if groups else (1, 1)
        for size in reversed(shape):
            if left == 1 and size != 1 and groups:
                left, inner = groups.pop()
            if size != 1 and left % size:
                return None
            strides.append(inner)
            if size != 1:
                left //= size
                inner *= size
        return replace(self, shape=tuple(shape), strides=tuple(reversed(strides)))


def tensor(
    shape: Sequence[int], dtype: str = "fp32", strides: Sequence[int] | None = None, offset: int = 0
) -> Tensor:
    """Return a tensor; contiguous where no strides are given.

    Raises:
        GuessError: an unknown data type, a negative size, or strides that do not fit the shape.

    """
    shape = tuple(shape)
    if any(size < 0 for size in shape):
        raise GuessError(f"shape {shape} has a negative size", "", "give sizes of 0 or more")
    if strides is not None and len(strides) != len(shape):
        raise GuessError(f"{len(strides)} strides do not fit shape {shape}", "", "give one a dimension")
    found = row_major(shape) if strides is None else tuple(strides)
    return Tensor(shape, dtype_word(dtype), found, offset)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor, in elements."""
    strides = []
    expected = 1
    for size in reversed(shape):
        strides.append(expected)
        expected *= max(size, 1)
    return tuple(reversed(strides))


def broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to.

    Raises:
        GuessError: they do not.

    """
    result: list[int] = []
    for position in range(1, max((len(shape) for shape in shapes), default=0) + 1):
        sizes = {shape[-position] for shape in shapes if len(shape) >= position} - {1}
        if len(sizes) > 1:
            raise GuessError(f"shapes {' and '.join(str(tuple(shape)) for shape in shapes)} do not broadcast")
        result.append(sizes.pop() if sizes else 1)
    return tuple(reversed(result))


_RANKS = {"bool": 0, "uint8": 1, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "fp8": 5, "bf16": 6,
          "fp16": 6, "fp32": 7, "fp64": 8, "complex32": 9, "complex64": 10, "complex128": 11}  # fmt: skip


def promoted(*tensors: Tensor) -> str:
    """Return the data type of an operation on tensors, scalars of shape () yielding to others."""
    least_float = _RANKS["fp8"]
    with_dims = [one.dtype for one in tensors if one.shape] or [one.dtype for one in tensors]
    scalars = [one.dtype for one in tensors if not one.shape]
    best = max(with_dims, key=lambda dtype: _RANKS[dtype])
    if {"bf16", "fp16"} <= set(with_dims) and _RANKS[best] == _RANKS["fp16"]:
        return "fp32"
    floats = [dtype for dtype in scalars if _RANKS[dtype] >= least_float]
    if _RANKS[best] < least_float and floats:
        return max(floats, key=lambda dtype: _RANKS[dtype])
    return best
