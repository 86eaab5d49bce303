"""What PyTorch says to shapes that do not fit together in broadcasts and matrix products."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from math import prod

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Misfit:
    """Shapes that do not fit, in PyTorch's words."""

    error: str


def listed(shape: Shape) -> str:
    """Write a shape as PyTorch's errors do."""
    return f"[{', '.join(map(str, shape))}]"


def broadcast(a: Shape, b: Shape) -> Shape | Misfit:
    """Return the shape that two shapes broadcast to."""
    width = max(len(a), len(b))
    sizes = list(_trailing(a, b))
    for back, (one, other) in enumerate(sizes):
        if one != other and 1 not in (one, other):
            return Misfit(
                f"The size of tensor a ({one}) must match the size of tensor b ({other}) "
                f"at non-singleton dimension {width - 1 - back}"
            )
    return tuple(other if one == 1 else one for one, other in reversed(sizes))


def _trailing(a: Shape, b: Shape) -> Iterator[tuple[int, int]]:
    return zip_longest(reversed(a), reversed(b), fillvalue=1)


def matmul(a: Shape, b: Shape) -> Shape | Misfit:
    """Return the shape of the product of two stacks of matrices, (..., n, m) and (..., m, p)."""
    *batch_a, rows, inner_a = a
    *batch_b, inner_b, columns = b
    if not batch_b or not batch_a:
        # the stack folds into one matrix
        if inner_a != inner_b:
            folded_rows, folded_columns = prod(batch_a) * rows, prod(batch_b) * columns
            return Misfit(
                "mat1 and mat2 shapes cannot be multiplied "
                f"({folded_rows}x{inner_a} and {inner_b}x{folded_columns})"
            )
        return (*(batch_a or batch_b), rows, columns)
    batch = broadcast(tuple(batch_a), tuple(batch_b))
    if isinstance(batch, Misfit):
        return batch
    if inner_a != inner_b:
        stack = prod(batch)
        return Misfit(
            f"Expected size for first two dimensions of batch2 tensor to be: [{stack}, {inner_a}] "
            f"but got: [{stack}, {inner_b}]."
        )
    return (*batch, rows, columns)


def add_in_place(a: Shape, b: Shape) -> Misfit | None:
    """Return what keeps `b` from being added to `a` in place, None where nothing does."""
    both = broadcast(a, b)
    if isinstance(both, Misfit):
        return both
    if both != a:
        return Misfit(f"output with shape {listed(a)} doesn't match the broadcast shape {listed(both)}")
    return None


def expand(a: Shape, target: Shape, kind: str) -> Misfit | None:
    """Return what keeps `a` from being expanded to `target`, None where nothing does.

    `kind` is the tensor's type as errors name it, as "torch.cuda.HalfTensor".
    """
    if len(a) > len(target):
        return Misfit(
            f"expand({kind}{{{listed(a)}}}, size={listed(target)}): the number of sizes provided "
            f"({len(target)}) must be greater or equal to the number of dimensions in the tensor ({len(a)})"
        )
    for back, (have, want) in enumerate(zip(reversed(a), reversed(target), strict=False)):
        if have not in (1, want):
            return Misfit(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at "
                f"non-singleton dimension {len(target) - 1 - back}.  "
                f"Target sizes: {listed(target)}.  Tensor sizes: {listed(a)}"
            )
    return None
