"""A program of tensor operations: what each puts on the GPU, and how its result lies in memory.

Every operation here is one that attention is composed of where no fused kernel does it. The operations keep
track of real strides, since those decide which of them copy.

In deterministic mode (`torch.use_deterministic_algorithms(True)`, also with `warn_only`) PyTorch fills memory
that an operation took uninitialised (`torch.utils.deterministic.fill_uninitialized_memory`, on by default):
one more fill kernel for each such tensor. Which operations take their result so was counted on an H200 with
`warn_only`; what changes without it, in the backwards of flash and efficient, was not.
"""

from collections.abc import Iterable, Sequence
from math import prod

from tracehunch.predict.activities import Activities, KernelGuess
from tracehunch.predict.attention import kernels
from tracehunch.predict.attention.pieces import pieces
from tracehunch.predict.attention.views import (
    Sizes,
    broadcast,
    elements_in_memory,
    expanded,
    fresh,
    is_contiguous,
    is_dense,
    result_of,
    transposed,
    viewed,
)
from tracehunch.predict.environment import Environment
from tracehunch.predict.ops import predict_gemm
from tracehunch.predict.sdpa.tensor import TensorSpec

SCALAR: Sizes = ()


class Program:
    """Operations done so far, in order of launch; each method runs one and returns its result."""

    def __init__(self, env: Environment) -> None:
        self.env = env
        self.parts: list[Activities] = []

    @property
    def strict(self) -> bool:
        """Whether algorithms must be deterministic, not only warn where they are not."""
        return self.env.deterministic and not self.env.warn_only

    def add(self, *found: KernelGuess, moved: int = 0, flops: int = 0) -> None:
        """Note kernels that one operation launches."""
        self.parts.append(Activities(kernels=found, bytes=moved, flops=flops))

    def memset(self) -> None:
        """Note a memset."""
        self.parts.append(Activities(memsets=1))

    def empty(self, dtype: str, op: str, times: int = 1) -> None:
        """Take memory without setting it, which only deterministic mode shows."""
        if self.env.deterministic:
            for _ in range(times):
                self.add(kernels.fill(dtype, op))

    def filled(self, shape: Sizes, dtype: str, op: str) -> TensorSpec:
        """Make a tensor of one value."""
        result = fresh(shape, dtype)
        self.empty(dtype, op)
        self.add(kernels.fill(dtype, op), moved=result.numel * result.item_bytes)
        return result

    def pointwise(
        self,
        found: KernelGuess,
        inputs: Sequence[TensorSpec],
        *,
        dtype: str | None = None,
        into: TensorSpec | None = None,
    ) -> TensorSpec:
        """Run an elementwise operation on inputs of one (broadcast) shape; `into` takes the result."""
        result = into or result_of(inputs, dtype or inputs[0].dtype)
        operands = (result, *inputs)
        self.add(*[found] * pieces(operands), moved=_moved(operands), flops=result.numel)
        return result

    def scaled(self, t: TensorSpec) -> TensorSpec:
        """Multiply by a number."""
        return self.pointwise(kernels.elementwise("AUnaryFunctor", t.dtype, "aten::mul"), [t])

    def cast(self, t: TensorSpec, dtype: str) -> TensorSpec:
        """Convert to another data type; what is dense keeps its order, anything else becomes row-major."""
        self.empty(dtype, "aten::_to_copy")
        dense = is_dense(t)
        result = TensorSpec(t.shape, t.stride, dtype) if dense else fresh(t.shape, dtype)
        return self.pointwise(kernels.copy(t.dtype, dtype, "aten::copy_"), [t], into=result)

    def copied(self, source: TensorSpec, target: TensorSpec, op: str = "aten::copy_") -> TensorSpec:
        """Copy elements between tensors of one data type: a memcpy where both lie alike, else a kernel."""
        alike = is_contiguous(source) and is_contiguous(target)
        if alike or (is_dense(source) and _same_order(source, target)):
            self.parts.append(Activities(copies=("dtod",), bytes=_moved((source, target))))
            return target
        return self.pointwise(kernels.copy(source.dtype, target.dtype, op), [source], into=target)

    def clone(self, t: TensorSpec) -> TensorSpec:
        """Copy, in the same order of memory where it is dense."""
        self.empty(t.dtype, "aten::clone")
        return self.copied(t, result_of([t], t.dtype))

    def contiguous(self, t: TensorSpec) -> TensorSpec:
        """Return the tensor row-major: itself, or a copy."""
        return t if is_contiguous(t) else self.row_major(t)

    def row_major(self, t: TensorSpec) -> TensorSpec:
        """Copy to row-major memory, whatever the tensor is."""
        self.empty(t.dtype, "aten::clone")
        return self.copied(t, fresh(t.shape, t.dtype))

    def reshaped(self, t: TensorSpec, shape: Sizes) -> TensorSpec:
        """Return a view with other sizes, of a copy where there is none."""
        return viewed(t, shape) or fresh(shape, self.row_major(t).dtype)

    def repeated(self, t: TensorSpec, times: int, dim: int) -> TensorSpec:
        """Repeat each element along a dimension (`repeat_interleave`): always a copy."""
        shape = (*t.shape[:dim], t.shape[dim] * times, *t.shape[dim + 1 :])
        source = expanded(
            TensorSpec(
                (*t.shape[: dim + 1], 1, *t.shape[dim + 1 :]),
                (*t.stride[: dim + 1], 0, *t.stride[dim + 1 :]),
                t.dtype,
            ),
            (*t.shape[: dim + 1], times, *t.shape[dim + 1 :]),
        )
        self.empty(t.dtype, "aten::clone")
        target = fresh(source.shape, t.dtype)
        self.pointwise(kernels.copy(t.dtype, t.dtype, "aten::copy_"), [source], into=target)
        return fresh(shape, t.dtype)

    def softmax(self, t: TensorSpec, op: str = "aten::_softmax") -> TensorSpec:
        """Softmax over the last dimension; its kernel is never cut in pieces."""
        source = self.contiguous(t)
        result = fresh(t.shape, t.dtype)
        self.add(kernels.softmax(t.dtype, t.shape[-1], op), moved=_moved((source, result)), flops=5 * t.numel)
        return result

    def softmax_backward(self, result: TensorSpec) -> TensorSpec:
        """Gradient of a softmax: gradient times output, then the sums."""
        op = "aten::_softmax_backward_data"
        product = self.pointwise(kernels.elementwise("MulFunctor", result.dtype, op), [result, result])
        self.add(
            kernels.softmax(result.dtype, result.shape[-1], op, backward=True),
            moved=_moved((product, result, result)),
            flops=5 * result.numel,
        )
        return fresh(result.shape, result.dtype)

    def reduced(self, t: TensorSpec, dim: int, op: str, *, dtype: str | None = None) -> TensorSpec:
        """Reduce a dimension to size 1."""
        kept = fresh((*t.shape[:dim], 1, *t.shape[dim + 1 :]), dtype or t.dtype)
        found = [kernels.reduction(kept.dtype, op)] * pieces((expanded(kept, t.shape), t))
        self.add(*found, moved=_moved((t, kept)), flops=t.numel)
        return kept

    def matmul(self, a: TensorSpec, b: TensorSpec) -> TensorSpec:
        """Multiply matrices; batch dimensions broadcast, and are merged into one, by a copy if need be."""
        batch = broadcast(a.shape[:-2], b.shape[:-2]) or a.shape[:-2]
        merged = (prod(batch),)
        first = self.reshaped(expanded(a, batch + a.shape[-2:]), merged + a.shape[-2:])
        second = self.reshaped(expanded(b, batch + b.shape[-2:]), merged + b.shape[-2:])
        self.bmm(first, second)
        return fresh((*batch, a.shape[-2], b.shape[-1]), a.dtype)

    def bmm(self, a: TensorSpec, b: TensorSpec) -> TensorSpec:
        """Multiply batches (batch, m, k) and (batch, k, n)."""
        first, second = self._for_cublas(a), self._for_cublas(b)
        batch, rows, inner = first.shape
        columns = second.shape[-1]
        self.parts.append(
            predict_gemm(
                self.env,
                m=rows,
                n=columns,
                k=inner,
                batch=batch,
                dtype=a.dtype,
                transposed_a=_is_transposed(first),
                transposed_b=_is_transposed(second),
                alignment=_alignment((first, second, fresh((batch, rows, columns), a.dtype))),
                op="aten::bmm",
            )
        )
        return fresh((batch, rows, columns), a.dtype)

    def _for_cublas(self, t: TensorSpec) -> TensorSpec:
        """Return a matrix that cuBLAS can read: one of the two last strides is 1 and the other spans it."""
        rows, columns = t.shape[-2:]
        of_row, of_column = t.stride[-2:]
        by_rows = of_column == 1 and of_row >= max(1, columns)
        by_columns = of_row == 1 and of_column >= max(1, rows)
        return t if by_rows or by_columns or is_contiguous(t) else self.row_major(t)


def swapped(t: TensorSpec) -> TensorSpec:
    """Return the view with the last two dimensions exchanged."""
    return transposed(t, t.ndim - 2, t.ndim - 1)


def _moved(operands: Iterable[TensorSpec]) -> int:
    """Bytes of distinct memory that operands take."""
    return sum(elements_in_memory(t) * t.item_bytes for t in operands)


def _same_order(first: TensorSpec, second: TensorSpec) -> bool:
    return all(
        one == other or size == 1
        for size, one, other in zip(first.shape, first.stride, second.stride, strict=True)
    )


def _is_transposed(t: TensorSpec) -> bool:
    """Whether a matrix's memory holds its transpose."""
    return t.stride[-1] != 1 and t.stride[-2] == 1


def _alignment(operands: Sequence[TensorSpec]) -> int:
    """Return the largest power of two that divides all strides between rows and batches, and offsets."""
    steps = 0
    for t in operands:
        lead = t.stride[-1] if _is_transposed(t) else t.stride[-2]
        lines = t.shape[-1] if _is_transposed(t) else t.shape[-2]
        steps |= lead if lines > 1 else 0
        steps |= t.stride[0] if t.shape[0] > 1 else 0
        steps |= t.storage_offset
    return steps & -steps if steps else 1 << 10
