"""A program of tensor operations: what each puts on the GPU, and how its result lies in memory.

Every operation here is one that attention is composed of where no fused kernel does it. The operations keep
track of real strides, since those decide which of them copy.

In deterministic mode (`torch.use_deterministic_algorithms(True)`, also with `warn_only`) PyTorch fills memory
that an operation took uninitialised (`torch.utils.deterministic.fill_uninitialized_memory`, on by default):
one more fill kernel for each such tensor. Which operations take their result so was counted on an H200 with
`warn_only`; what changes without it, in the backwards of flash and efficient, was not.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import prod

from tracehunch.predict.activities import Activities, KernelGuess
from tracehunch.predict.attention import kernels
from tracehunch.predict.attention.costs import (
    hidden,
    moved,
    pointwise_step,
    product_steps,
    softmax_step,
    sum_step,
)
from tracehunch.predict.attention.pieces import pieces
from tracehunch.predict.attention.views import (
    Sizes,
    broadcast,
    expanded,
    fresh,
    is_contiguous,
    is_dense,
    result_of,
    transposed,
    viewed,
)
from tracehunch.predict.environment import Environment
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.ops.gemm import Product, predict_product
from tracehunch.predict.roofline.steps import Step
from tracehunch.predict.sdpa.tensor import TensorSpec

SCALAR: Sizes = ()


@dataclass(frozen=True, slots=True)
class Part:
    """What one operation launches, in words and as the model of time sees it; `called`: see `Program`."""

    activities: Activities
    steps: tuple[Step, ...] = ()
    called: str = ""


class UntoldError(Exception):
    """What runs depends on something that is not known."""


class Program:
    """Operations done so far, in order of launch; each method runs one and returns its result.

    `called` is the op that the program calls, within which the others run: "aten::softmax". Empty, each
    operation is its own.
    """

    def __init__(self, env: Environment, called: str = "") -> None:
        self.env = env
        self.called = called
        self.parts: list[Part] = []

    @contextmanager
    def calling(self, op: str) -> Iterator[None]:
        """Run what follows as part of an op that the program calls."""
        before, self.called = self.called, self.called or op
        yield
        self.called = before

    @property
    def strict(self) -> bool:
        """Whether algorithms must be deterministic, not only warn where they are not."""
        return self.env.deterministic and not self.env.warn_only

    def note(self, activities: Activities, *steps: Step) -> None:
        """Note what one operation launches, or what is to be said of it."""
        self.parts.append(Part(activities, steps, self.called))

    def add(self, *found: KernelGuess, step: Step, flops: int = 0) -> None:
        """Note kernels that one operation launches alike, in pieces; `step` is the work of all of them."""
        each = step
        if len(found) > 1:
            each = replace(step, bytes=step.bytes // len(found), rows=step.rows // len(found))
        self.note(Activities(kernels=found, bytes=step.bytes, flops=flops), *[each] * len(found))

    def fused(self, *found: KernelGuess, step: Step, flops: int) -> None:
        """Note the kernels of a fused backend."""
        self.note(Activities(kernels=found, bytes=step.bytes, flops=flops), step)

    def memset(self) -> None:
        """Note a memset of a few bytes."""
        self.note(Activities(memsets=1), Step("memset"))

    def empty(self, dtype: str, op: str, times: int = 1) -> None:
        """Take memory without setting it, which only deterministic mode shows."""
        if self.env.deterministic:
            for _ in range(times):
                self.add(kernels.fill(dtype, op), step=Step("fill"))

    def filled(self, shape: Sizes, dtype: str, op: str) -> TensorSpec:
        """Make a tensor of one value."""
        result = fresh(shape, dtype)
        self.empty(dtype, op)
        self.add(kernels.fill(dtype, op), step=Step("fill", result.numel * result.item_bytes))
        return result

    def pointwise(
        self,
        found: KernelGuess,
        inputs: Sequence[TensorSpec],
        kind: str,
        *,
        dtype: str | None = None,
        into: TensorSpec | None = None,
    ) -> TensorSpec:
        """Run an elementwise operation on inputs of one (broadcast) shape; `into` takes the result.

        `kind` is the first word of the name of its cost.
        """
        result = into or result_of(inputs, dtype or inputs[0].dtype)
        launches = pieces((result, *inputs))
        self.add(*[found] * launches, step=pointwise_step(kind, result, inputs), flops=result.numel)
        return result

    def scaled(self, t: TensorSpec) -> TensorSpec:
        """Multiply by a number."""
        return self.pointwise(kernels.elementwise("AUnaryFunctor", t.dtype, "aten::mul"), [t], "stream")

    def cast(self, t: TensorSpec, dtype: str) -> TensorSpec:
        """Convert to another data type; what is dense keeps its order, anything else becomes row-major."""
        self.empty(dtype, "aten::_to_copy")
        dense = is_dense(t)
        result = TensorSpec(t.shape, t.stride, dtype) if dense else fresh(t.shape, dtype)
        kind = "cast" if dense else "layout"
        return self.pointwise(kernels.copy(t.dtype, dtype, "aten::copy_"), [t], kind, into=result)

    def copied(self, source: TensorSpec, target: TensorSpec, op: str = "aten::copy_") -> TensorSpec:
        """Copy elements between tensors of one data type: a memcpy where both lie alike, else a kernel."""
        alike = is_contiguous(source) and is_contiguous(target)
        if alike or (is_dense(source) and _same_order(source, target)):
            size = moved((source, target))
            self.note(Activities(copies=("dtod",), bytes=size), Step("copy", size))
            return target
        return self.pointwise(kernels.copy(source.dtype, target.dtype, op), [source], "layout", into=target)

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
        self.pointwise(kernels.copy(t.dtype, t.dtype, "aten::copy_"), [source], "repeat", into=target)
        return fresh(shape, t.dtype)

    def softmax(
        self, t: TensorSpec, op: str = "aten::_softmax", *, causal: bool = False, masked: bool = False
    ) -> TensorSpec:
        """Softmax over the last dimension; its kernel is never cut in pieces.

        `causal`: what lies above the diagonal is at minus infinity; `masked`: what, is not known.
        """
        source = self.contiguous(t)
        result = fresh(t.shape, t.dtype)
        found = kernels.softmax(t.dtype, t.shape[-1], op)
        out_of_sight = hidden(t) if causal else t.numel // 2 if masked else 0
        step = softmax_step(found, t, (source, result), out_of_sight)
        self.add(found, step=step, flops=5 * t.numel)
        return result

    def softmax_backward(self, result: TensorSpec) -> TensorSpec:
        """Gradient of a softmax: gradient times output, then the sums."""
        op = "aten::_softmax_backward_data"
        multiply = kernels.elementwise("MulFunctor", result.dtype, op)
        product = self.pointwise(multiply, [result, result], "stream")
        found = kernels.softmax(result.dtype, result.shape[-1], op, backward=True)
        step = softmax_step(found, result, (product, result, result))
        self.add(found, step=step, flops=5 * result.numel)
        return fresh(result.shape, result.dtype)

    def reduced(self, t: TensorSpec, dim: int, op: str, *, dtype: str | None = None) -> TensorSpec:
        """Reduce a dimension to size 1."""
        kept = fresh((*t.shape[:dim], 1, *t.shape[dim + 1 :]), dtype or t.dtype)
        found = [kernels.reduction(kept.dtype, op)] * pieces((expanded(kept, t.shape), t))
        self.add(*found, step=sum_step(t, kept.numel, moved([kept])), flops=t.numel)
        return kept

    def summed(self, t: TensorSpec, left: int, op: str = "aten::sum") -> None:
        """Reduce some dimensions, so that so many elements are left."""
        self.add(kernels.reduction(t.dtype, op), step=sum_step(t, left, left * t.item_bytes))

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
        product = Product(
            rows,
            columns,
            inner,
            batch,
            dtype_word(a.dtype),
            _is_transposed(first),
            _is_transposed(second),
            _alignment((first, second, fresh((batch, rows, columns), a.dtype))),
            "cublas",
        )
        found = Activities()
        if min(rows, columns, inner, batch) > 0:
            found = predict_product(self.env, product, "aten::bmm")
        self.note(found, *product_steps(product, found))
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
