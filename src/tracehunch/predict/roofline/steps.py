"""What an unfused attention does, one kernel after another: FLOPs and bytes, forward and backward.

The lists follow the kernels of traces: naive is the formula in PyTorch's operations, `masked_fill` out of
place (a copy, then the fill), naive_inplace the same with `masked_fill_`; math is what SDPA's math backend
launches: half types are computed in float32, a causal mask is built first, and rows without any key are
looked for. Backwards of naive follow from autograd's formulas, that of math from a trace.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline.dims import AttentionDims, element_bytes

_COLUMNS: Final = 32
"""Columns that a product computes at least: a narrower result fills its tile with nothing."""


@dataclass(frozen=True, slots=True)
class Step:
    """One kernel or copy. `kind` names its cost in `fitted.toml`.

    `read` and `written` are bytes of whole tensors, as they would go to and from memory. `masked` are the
    elements of a softmax whose rows are partly at minus infinity (they are slower), `rows` the rows of a
    reduction, `depth` the inner dimension of a product.
    """

    name: str
    kind: str
    flops: int = 0
    read: int = 0
    written: int = 0
    masked: int = 0
    rows: int = 0
    depth: int = 0

    @property
    def bytes(self) -> int:
        """Read and written together."""
        return self.read + self.written


def unfused_steps(
    backend: str, dims: AttentionDims, dtype: str, causal: bool, *, backward: bool = False
) -> tuple[Step, ...]:
    """Return the steps of naive, naive_inplace or math, in order."""
    word = dtype_word(dtype)
    if backend == "math":
        return tuple(_math_backward(dims, word) if backward else _math(dims, word, causal))
    if backward:
        return tuple(_naive_backward(dims, word, causal))
    return tuple(_naive(dims, word, causal, in_place=backend == "naive_inplace"))


def unfused_bytes(
    backend: str, dims: AttentionDims, dtype: str, causal: bool, *, backward: bool = False
) -> int:
    """Return the bytes that all steps together read and write."""
    return sum(step.bytes for step in unfused_steps(backend, dims, dtype, causal, backward=backward))


def _stream(name: str, kind: str, elements: int, read: int, written: int, **more: int) -> Step:
    """Return a step that reads and writes so many bytes of each element."""
    return Step(name, kind, read=read * elements, written=written * elements, **more)


def _scores_product(name: str, dims: AttentionDims, dtype: str, width: int) -> Step:
    """Return a product whose result is as large as the scores; `width` its inner dimension."""
    e = element_bytes(dtype)
    inputs = dims.batch * dims.heads * (dims.queries + dims.keys) * width
    return Step(
        name,
        f"product-scores-{_alignment(dims, dtype)}",
        flops=2 * dims.scores * width,
        read=e * inputs,
        written=e * dims.scores,
        depth=width,
    )


def _narrow_product(
    name: str, dims: AttentionDims, dtype: str, width: int, *, over_keys: bool = True
) -> Step:
    """Return a product of the weights (or their gradient) with a matrix `width` wide."""
    inner, outer = (dims.keys, dims.queries) if over_keys else (dims.queries, dims.keys)
    e = element_bytes(dtype)
    calls = dims.batch * dims.heads
    return Step(
        name,
        f"product-output-{_alignment(dims, dtype)}",
        flops=2 * dims.scores * -(-width // _COLUMNS) * _COLUMNS,
        read=e * (dims.scores + calls * inner * width),
        written=e * calls * outer * width,
        depth=inner,
    )


def _alignment(dims: AttentionDims, dtype: str) -> str:
    """Rows of scores start at multiples of 16 bytes, of 4 or of 2: cuBLAS has other kernels for each."""
    if dtype == "fp32":
        return "fp32"
    return "half8" if dims.keys % 8 == 0 else "half2" if dims.keys % 2 == 0 else "half1"


def _repeat(dims: AttentionDims, dtype: str) -> Iterator[Step]:
    """Yield the copies that give every query head a key/value head of its own."""
    if dims.groups > 1:
        e, calls = element_bytes(dtype), dims.batch * dims.heads * dims.keys
        yield Step("repeat k", "repeat", read=e * dims.k_elements, written=e * calls * dims.head_dim)
        yield Step("repeat v", "repeat", read=e * dims.v_elements, written=e * calls * dims.value_dim)


def _naive(dims: AttentionDims, dtype: str, causal: bool, *, in_place: bool) -> Iterator[Step]:
    e, size, n = element_bytes(dtype), "fp32" if dtype == "fp32" else "half", dims.scores
    rows = dims.batch * dims.heads * dims.queries
    yield from _repeat(dims, dtype)
    yield _scores_product("q k^T", dims, dtype, dims.head_dim)
    yield _stream("scale", f"stream-{size}", n, e, e)
    if causal:
        if not in_place:
            yield _stream("copy for masked_fill", "copy", n, e, e)
        yield _stream("masked_fill", f"mask-{size}", n, e, e)
    yield _stream("softmax", f"softmax-{size}", n, e, e, masked=n if causal else 0, rows=rows)
    yield _narrow_product("weights v", dims, dtype, dims.value_dim)


def _naive_backward(dims: AttentionDims, dtype: str, causal: bool) -> Iterator[Step]:
    e, size, n = element_bytes(dtype), "fp32" if dtype == "fp32" else "half", dims.scores
    yield from _gradients_of_weights(dims, dtype)
    yield _stream("softmax backward", f"softmax-{size}", n, 2 * e, e)
    if causal:
        yield _stream("copy for masked_fill", "copy", n, e, e)
        yield _stream("masked_fill", f"mask-{size}", n, e, e)
    yield _stream("scale", f"stream-{size}", n, e, e)
    yield from _gradients_of_inputs(dims, dtype)
    yield from _repeat(dims, dtype)


def _gradients_of_weights(dims: AttentionDims, dtype: str) -> Iterator[Step]:
    yield _narrow_product("weights^T grad", dims, dtype, dims.value_dim, over_keys=False)
    yield _scores_product("grad v^T", dims, dtype, dims.value_dim)


def _gradients_of_inputs(dims: AttentionDims, dtype: str) -> Iterator[Step]:
    yield _narrow_product("grad k", dims, dtype, dims.head_dim)
    yield _narrow_product("grad^T q", dims, dtype, dims.head_dim, over_keys=False)


def _math(dims: AttentionDims, dtype: str, causal: bool) -> Iterator[Step]:
    half, n, square = dtype != "fp32", dims.scores, dims.queries * dims.keys
    rows = dims.batch * dims.heads * dims.queries
    inputs = (
        ("q", dims.q_elements),
        ("k", _repeated(dims, dims.head_dim)),
        ("v", _repeated(dims, dims.value_dim)),
    )
    yield from _repeat(dims, dtype)
    if half:
        for name, elements in inputs:
            yield _stream(f"{name} to float32", "cast-up", elements, 2, 4)
    yield _stream("scale q", "stream-fp32", dims.q_elements, 4, 4)
    if causal:
        yield _stream("ones", "fill", square, 0, 1)
        yield _stream("tril", "triangle", square, 1, 1)
        yield Step("0", "fill")
        yield Step("-inf", "fill")
        yield _stream("mask to float32", "mask-float", square, 1, 4)
    yield _stream("scale k", "stream-fp32", inputs[1][1], 4, 4)
    yield _scores_product("q k^T", dims, "fp32", dims.head_dim)
    if causal:
        yield _stream("add mask", "add", n, 4, 4)
    yield _stream("softmax", "softmax-fp32", n, 4, 4, masked=n if causal else 0, rows=rows)
    yield _stream("isneginf", "flag", n, 4, 1)
    yield _stream("all", "all", n, 1, 0, rows=rows)
    yield Step("0", "fill")
    yield _stream("where", "select", n, 4, 4)
    if half:
        yield _stream("weights to half", "cast-down", n, 4, 2)
    yield _narrow_product("weights v", dims, "fp32", dims.value_dim)
    if half:
        yield _stream("output to half", "cast-down", dims.out_elements, 4, 2)


def _math_backward(dims: AttentionDims, dtype: str) -> Iterator[Step]:
    half, n = dtype != "fp32", dims.scores
    keys = _repeated(dims, dims.head_dim)
    if half:
        yield _stream("grad to float32", "cast-up", dims.out_elements, 2, 4)
    yield from _gradients_of_weights(dims, "fp32")
    yield _stream("where backward", "stream-fp32", n, 8, 4)
    yield _stream("softmax backward", "stream-fp32", n, 8, 4)
    yield from _gradients_of_inputs(dims, "fp32")
    yield _stream("scale grad q", "stream-fp32", dims.q_elements, 4, 4)
    yield _stream("scale grad k", "stream-fp32", keys, 4, 4)
    yield _stream("grad k laid out", "cast-up", keys, 4, 4)
    if half:
        for name, elements in (("q", dims.q_elements), ("k", keys), ("v", _repeated(dims, dims.value_dim))):
            yield _stream(f"grad {name} to half", "cast-down", elements, 4, 2)
    yield from _repeat(dims, dtype)


def _repeated(dims: AttentionDims, width: int) -> int:
    """Elements of k or v with a head for every query head."""
    return dims.batch * dims.heads * dims.keys * width
