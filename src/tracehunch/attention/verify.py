"""Does a variant compute attention? Its output against a float64 reference, on one batch element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.attention.variant import Inputs
    from tracehunch.attention.workload import Dtype

ROUNDINGS: Final = 16
"""Roundings of an element that may add up: scores, their scaling, exponentials, weights and output each
round, and the exponential turns the absolute error of a score (up to about 6 for normal inputs) into a
relative one."""

PRECISION: Final[dict[Dtype, float]] = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-11}
"""Relative step of the products: 8 and 11 significant bits; float32 may be multiplied as TF32, also 11."""

QUERY_BLOCK: Final = 1024
"""Queries at a time, so that the reference needs little memory at any length."""


@dataclass(frozen=True, slots=True)
class Verification:
    """Largest absolute error of one batch element against float64 (infinite for NaN), and what is allowed."""

    max_error: float
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether the output is right."""
        return self.max_error <= self.tolerance


def verify(output: Any, inputs: Inputs, dtype: Dtype) -> Verification:
    """Compare the last batch element, the first to go wrong where strides are.

    ``output`` is (batch, heads, seq, head_dim); one of another shape has an infinite error. The tolerance
    shrinks with the largest output: averages over many keys are small, and so are their errors.
    """
    unit = ROUNDINGS * PRECISION[dtype]
    if tuple(output.shape) != tuple(inputs.q.shape):
        return Verification(math.inf, unit)
    worst = largest = 0.0
    for expected, computed in _blocks(output, inputs):
        error = (computed - expected).abs().max().item()
        largest = max(largest, expected.abs().max().item())
        worst = max(worst, math.inf if math.isnan(error) else error)
    return Verification(worst, unit * min(1.0, largest))


def _blocks(output: Any, inputs: Inputs) -> Iterator[tuple[Any, Any]]:
    """Yield reference and output of the last batch element, some queries of a head at a time, in float64."""
    q, k, v = inputs.q[-1], inputs.k[-1], inputs.v[-1]
    for head in range(q.shape[0]):
        keys, values = k[head // inputs.groups].double(), v[head // inputs.groups].double()
        for first in range(0, q.shape[1], QUERY_BLOCK):
            rows = slice(first, first + QUERY_BLOCK)
            queries = q[head, rows].double()
            reference = _reference(queries, keys, values, inputs.scale, first if inputs.causal else None)
            yield reference, output[-1, head, rows].double()


def _reference(q: Any, k: Any, v: Any, scale: float, first_query: int | None) -> Any:
    """softmax(q k^T scale, masked) v for some queries of a head; ``first_query`` is None without a mask."""
    scores = (q @ k.T) * scale
    if first_query is not None:
        scores = scores + scores.new_full(scores.shape, float("-inf")).triu(first_query + 1)
    return scores.softmax(dim=-1) @ v
