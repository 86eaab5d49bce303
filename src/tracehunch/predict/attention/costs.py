"""What operations move and compute, for the model of time: each a `Step`, its kind named after the kernel."""

from collections.abc import Sequence
from typing import Final

from tracehunch.predict.activities import Activities, KernelGuess
from tracehunch.predict.attention.views import elements_in_memory
from tracehunch.predict.ops.dtypes import HALF, dtype_word
from tracehunch.predict.ops.gemm import Product
from tracehunch.predict.roofline.steps import Step
from tracehunch.predict.roofline.work import causal_pairs
from tracehunch.predict.sdpa.tensor import TensorSpec

_WARP: Final = 32
_ROOMY: Final = 1_024
"""Longest rows of a softmax for which a warp's registers have room to spare."""


def moved(operands: Sequence[TensorSpec]) -> int:
    """Bytes of distinct memory that operands take."""
    return sum(elements_in_memory(t) * t.item_bytes for t in operands)


def pointwise_step(kind: str, result: TensorSpec, inputs: Sequence[TensorSpec]) -> Step:
    """Return an elementwise kernel; slower where operands do not lie in one order."""
    apart = any(t.stride != result.stride for t in inputs)
    name = f"{kind}-{_width(inputs[0].dtype)}{'-apart' if apart else ''}"
    return Step(name, moved((result, *inputs)))


def sum_step(t: TensorSpec, left: int, bytes_left: int) -> Step:
    """Return a reduction that leaves so many elements; slower over memory that holds the transpose."""
    kind = "all" if t.dtype == "bool" else f"sum-{_width(t.dtype)}"
    turned = t.ndim > 0 and t.stride[-1] != 1 and t.shape[-1] != 1
    return Step(kind + ("-turned" if turned else ""), moved((t,)) + bytes_left, rows=left)


def softmax_step(found: KernelGuess, t: TensorSpec, operands: Sequence[TensorSpec], masked: int = 0) -> Step:
    """Return a softmax, or its backward, over the last dimension of `t`."""
    return Step(
        _softmax_kind(found, t), moved(operands), masked=masked, rows=_rows(found, t), length=t.shape[-1]
    )


def hidden(t: TensorSpec) -> int:
    """Return how many scores of a causal call lie above the diagonal."""
    queries, keys = t.shape[-2:]
    return t.numel // max(queries * keys, 1) * (queries * keys - causal_pairs(queries, keys))


def product_steps(product: Product, found: Activities) -> tuple[Step, ...]:
    """Return a product with all of its kernels as one step, and the memset before it as another."""
    if found.kernels == ():
        return ()
    us = None if found.time is None else found.time.mid_us
    made = Step(f"product-{_width(product.dtype)}", product.bytes, us=us, product=product)
    return (*[Step("memset")] * (found.memsets or 0), made)


def _softmax_kind(found: KernelGuess, t: TensorSpec) -> str:
    """Return the name of a softmax's cost: rows in a warp's registers, many in them, or a block for each."""
    direction = "softmax_backward" if "ackward" in found.hint else "softmax"
    rows = "block" if "warp" not in found.hint else "long" if t.shape[-1] > _ROOMY else "warp"
    return f"{direction}_{rows}-{_width(t.dtype)}"


def _rows(found: KernelGuess, t: TensorSpec) -> int:
    """Return the rows of a softmax; where warps have them, the steps that these take, filled up."""
    length = max(t.shape[-1], 1)
    filled = 1 << (length - 1).bit_length()
    return t.numel // length * (max(filled // _WARP, 1) if "warp" in found.hint else 1)


def _width(dtype: str) -> str:
    """Return the word for a data type in names of costs."""
    word = dtype_word(dtype)
    return "half" if word in HALF else word
