"""Normalisation layers: an input, a result of its size, parameters, statistics kept for the backward."""

import math
from collections.abc import Sequence
from typing import Final

from tracehunch.facts.work.inputs import Call, Operand
from tracehunch.facts.work.work import Work, elements, moved, moving

_STATISTIC: Final = "fp32"


def layer_norm(call: Call) -> Work:
    """Read input, weight and bias; write the result, and a mean and a deviation of each row."""
    one = call.tensor(0)
    return moving([moved(one, *_given(call, 2, 3)), one.nbytes, 2 * _rows(call)])


def layer_norm_backward(call: Call) -> Work:
    """Read gradient, input, statistics and weight; write the gradients that ``output_mask`` asks for."""
    grad, one = call.tensor(0), call.tensor(1)
    read = moved(grad, one, *_given(call, 3, 4, 5, 6))
    return moving([read, *_gradients(call, 7, one, *_given(call, 5, 6))])


def rms_norm(call: Call) -> Work:
    """Read input and weight; write the result, and a deviation of each row."""
    one = call.tensor(0)
    return moving([moved(one, *_given(call, 2)), one.nbytes, _rows(call)])


def rms_norm_backward(call: Call) -> Work:
    """Read gradient, input, deviations and weight; write the gradients that ``output_mask`` asks for."""
    grad, one = call.tensor(0), call.tensor(1)
    return moving([moved(grad, one, *_given(call, 3, 4)), *_gradients(call, 5, one, *_given(call, 4))])


def group_norm(call: Call) -> Work:
    """Read input, weight and bias; write the result, and a mean and a deviation of each group."""
    one = call.tensor(0)
    groups = call.integer(3) * call.integer(6)
    return moving([moved(one, *_given(call, 1, 2)), one.nbytes, 2 * elements(groups, one.dtype)])


def group_norm_backward(call: Call) -> Work:
    """Read gradient, input, statistics and weight; write the gradients that ``output_mask`` asks for."""
    grad, one, weight = call.tensor(0), call.tensor(1), call.optional(4)
    read = moved(grad, one, weight, *_given(call, 2, 3))
    return moving([read, *_gradients(call, 9, one, weight, weight)])


def batch_norm(call: Call) -> Work:
    """Read input, parameters and running statistics; write the result, and in training the statistics."""
    one, kept = call.tensor(0), _given(call, 3, 4)
    training = call.flag(5)
    saved = 2 * elements(one.shape[1], _STATISTIC) if training else 0
    return moving([moved(one, *_given(call, 1, 2), *kept), one.nbytes, saved + moved(*kept) * training])


def batch_norm_backward(call: Call) -> Work:
    """Read gradient, input (alike in size), weight and statistics; write three gradients."""
    one, weight = call.tensor(1), call.optional(2)
    return moving([moved(call.tensor(0), one, weight, *_given(call, 5, 6)), one.nbytes, 2 * moved(weight)])


def _given(call: Call, *positions: int) -> list[Operand | None]:
    return [call.optional(at) for at in positions]


def _rows(call: Call) -> int:
    """Return the bytes of one statistic of each row, which is as long as the weight, or as stated."""
    one, weight = call.tensor(0), call.optional(2)
    length = math.prod(call.integers(1)) if weight is None else weight.numel
    return elements(one.numel // max(length, 1), _STATISTIC)


def _gradients(call: Call, mask: int, *of: Operand | None) -> Sequence[int]:
    """Return the bytes of the gradients that are asked for."""
    wanted = call.flags(mask)
    return [one.nbytes for one, asked in zip(of, wanted, strict=False) if asked and one is not None]
