"""Tensors without values: which views of them exist, and how results of operations are laid out in memory.

The rules are those by which torch decides between a view and a copy, and by which elementwise operations
order the memory of a new result. Source: behaviour of torch 2.13, compared in the tests.
"""

from collections.abc import Sequence
from math import prod

from tracehunch.predict.sdpa.tensor import TensorSpec, contiguous_strides

Sizes = tuple[int, ...]


def fresh(shape: Sizes, dtype: str) -> TensorSpec:
    """Return a new row-major tensor."""
    return TensorSpec(shape, contiguous_strides(shape), dtype)


def _seen(t: TensorSpec, shape: Sizes, stride: Sizes) -> TensorSpec:
    """Return a view; made anew, since `dataclasses.replace` takes three times as long."""
    return TensorSpec(shape, stride, t.dtype, t.storage_offset, t.requires_grad)


def transposed(t: TensorSpec, first: int, second: int) -> TensorSpec:
    """Return the view with two dimensions exchanged."""
    order = list(range(t.ndim))
    order[first], order[second] = order[second], order[first]
    return _seen(t, tuple(t.shape[at] for at in order), tuple(t.stride[at] for at in order))


def expanded(t: TensorSpec, shape: Sizes) -> TensorSpec:
    """Return the view of a shape in which dimensions of size 1, or missing in front, are repeated."""
    missing = len(shape) - t.ndim
    strides = [
        0 if at < missing or (t.shape[at - missing] == 1 and size != 1) else t.stride[at - missing]
        for at, size in enumerate(shape)
    ]
    return _seen(t, shape, tuple(strides))


def is_contiguous(t: TensorSpec) -> bool:
    """Whether a tensor is row-major; the strides of dimensions of size 1 do not count."""
    wanted = 1
    for size, stride in zip(reversed(t.shape), reversed(t.stride), strict=True):
        if size != 1:
            if stride != wanted:
                return False
            wanted *= size
    return True


def is_dense(t: TensorSpec) -> bool:
    """Whether a tensor's elements fill a stretch of memory, in any order and each once."""
    wanted = 1
    steps = [(stride, size) for size, stride in zip(t.shape, t.stride, strict=True) if size != 1]
    for stride, size in sorted(steps):
        if stride != wanted:
            return False
        wanted *= size
    return True


def viewed(t: TensorSpec, shape: Sizes) -> TensorSpec | None:
    """Return the view with other sizes of the same elements, `None` where only a copy has them."""
    strides = _view_strides(t.shape, t.stride, shape)
    return None if strides is None else _seen(t, shape, strides)


def _view_strides(old: Sizes, strides: Sizes, new: Sizes) -> Sizes | None:
    """Walk both shapes from the back: old dimensions that lie behind one another may be cut anew."""
    if prod(old) == 0 or not old:
        return contiguous_strides(new)
    result = [0] * len(new)
    at = len(new) - 1
    base, inside = strides[-1], 1
    cut = 1
    for dim in range(len(old) - 1, -1, -1):
        inside *= old[dim]
        if dim and (old[dim - 1] == 1 or strides[dim - 1] == inside * base):
            continue
        while at >= 0 and (cut < inside or new[at] == 1):
            result[at] = cut * base
            cut *= new[at]
            at -= 1
        if cut != inside:
            return None
        if dim:
            base, inside, cut = strides[dim - 1], 1, 1
    return tuple(result) if at == -1 else None


def laid_out(shape: Sizes, operands: Sequence[Sizes]) -> Sizes:
    """Return the strides of a new elementwise result: dense, in the order of its operands' memory.

    `operands` are strides of the inputs, broadcast to `shape`.
    """
    order = memory_order(shape, operands)
    strides = [0] * len(shape)
    step = 1
    for dim in order:
        strides[dim] = step
        step *= max(shape[dim], 1)
    return tuple(strides)


def memory_order(shape: Sizes, operands: Sequence[Sizes]) -> list[int]:
    """Return the dimensions from the one that changes fastest in memory, as the first operands have it."""
    order = list(range(len(shape)))[::-1]
    for at in range(1, len(order)):
        moving = at
        for other in range(at - 1, -1, -1):
            comes_before = _compare(order[other], order[moving], shape, operands)
            if comes_before > 0:
                order[other], order[moving] = order[moving], order[other]
                moving = other
            elif comes_before < 0:
                break
    return order


def _compare(first: int, second: int, shape: Sizes, operands: Sequence[Sizes]) -> int:
    """Say whether a dimension lies outside another (1), inside it (-1), or neither can be told (0)."""
    for strides in operands:
        one, other = strides[first], strides[second]
        if one == 0 or other == 0:
            continue
        if one != other:
            return 1 if one > other else -1
        if shape[first] > shape[second]:
            return 1
    return 0


def broadcast(first: Sizes, second: Sizes) -> Sizes | None:
    """Return the shape to which two shapes broadcast, `None` where they do not."""
    longest = max(len(first), len(second))
    one = (1,) * (longest - len(first)) + first
    other = (1,) * (longest - len(second)) + second
    if any(a != b and 1 not in (a, b) for a, b in zip(one, other, strict=True)):
        return None
    return tuple(b if a == 1 else a for a, b in zip(one, other, strict=True))


def result_of(inputs: Sequence[TensorSpec], dtype: str) -> TensorSpec:
    """Return the new tensor that an elementwise operation makes of inputs of one (broadcast) shape."""
    first = inputs[0]
    if len(inputs) == 1 and is_dense(first):
        return TensorSpec(first.shape, first.stride, dtype)
    return TensorSpec(first.shape, laid_out(first.shape, [t.stride for t in inputs]), dtype)


def elements_in_memory(t: TensorSpec) -> int:
    """Return how many different elements a tensor has: repeated ones count once."""
    return prod(size for size, stride in zip(t.shape, t.stride, strict=True) if stride != 0 or size == 1)
