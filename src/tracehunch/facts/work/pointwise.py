"""Operations that take each element by itself: what they read, broadcast, and what they write."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Final

from tracehunch.facts.work.dtypes import as_floating, promoted
from tracehunch.facts.work.inputs import Call, NotRecorded, Operand
from tracehunch.facts.work.work import Work, elements, moved, moving


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ONE: Final = _names(
    """
    abs acos acosh angle asin asinh atan atanh bitwise_not ceil celu conj_physical cos cosh deg2rad
    digamma elu erf erfc erfinv exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish hardtanh
    i0 isfinite isinf isnan isneginf isposinf leaky_relu lgamma log log10 log1p log2 logical_not logit
    mish nan_to_num neg positive rad2deg reciprocal relu relu6 round rsqrt selu sgn sigmoid sign signbit
    silu sin sinc sinh softplus softshrink sqrt square tan tanh threshold trunc
    """
)
_TWO: Final = _names(
    """
    __and__ __or__ __xor__ __lshift__ __rshift__ add atan2 bitwise_and bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor clamp_max clamp_min copysign div elu_backward eq floor_divide fmax
    fmin fmod ge gelu_backward gt hardsigmoid_backward hardswish_backward hardtanh_backward heaviside
    hypot le leaky_relu_backward logaddexp logical_and logical_or logical_xor logit_backward lt
    masked_fill maximum minimum mish_backward mse_loss mul native_dropout_backward ne nextafter pow
    remainder rsub sigmoid_backward silu_backward smooth_l1_loss softplus_backward softshrink_backward
    sub tanh_backward threshold_backward true_divide xlogy
    """
)
_THREE: Final = _names(
    """
    addcdiv addcmul binary_cross_entropy clamp lerp log_sigmoid_backward mse_loss_backward
    smooth_l1_loss_backward where
    """
)
OPS: Final[Mapping[str, int]] = {
    name: n for n, names in enumerate((_ONE, _TWO, _THREE), start=1) for name in names
}
"""Operation -> how many operands it has, scalars among them. Source: native_functions.yaml of PyTorch."""

WRITING: Final = _names(
    """
    bernoulli_ cauchy_ copy_ exponential_ fill_ geometric_ log_normal_ normal_ random_ uniform_ zero_
    """
)
"""Operations that write what they are called on without reading it."""

_BOOLEAN: Final = _names(
    """
    eq ne lt le gt ge isfinite isinf isnan isneginf isposinf logical_and logical_not logical_or
    logical_xor signbit
    """
)
_NEVER_INTEGER: Final = _names(
    """
    acos acosh asin asinh atan atan2 atanh cos cosh deg2rad digamma div erf erfc erfinv exp exp2 expm1
    i0 lgamma log log10 log1p log2 logit rad2deg reciprocal rsqrt sigmoid sin sinc sinh sqrt tan tanh
    true_divide xlogy
    """
)


def out_of_place(call: Call) -> Work:
    """Read the operands, and write a result of the shape that they broadcast to."""
    name = plain(call.name)
    operands = _operands(call, OPS[name])
    out = call.out(OPS[name])
    word = _result_type(name, operands) if out is None else out.dtype
    return moving([moved(*operands), elements(_numel(broadcast(*operands)), word)])


def in_place(call: Call) -> Work:
    """Read the operands, the one that is changed among them, and write that one."""
    operands = _operands(call, OPS[plain(call.name)])
    return moving([moved(*operands), operands[0].stored_bytes])


def write(call: Call) -> Work:
    """Write what it is called on, as ``fill_`` does; ``copy_`` reads what it copies, if it is a tensor."""
    return moving([call.tensor(0).stored_bytes, moved(call.optional(1))])


def dropout(call: Call) -> Work:
    """Read the input; write the result, and the mask in bytes."""
    one = call.tensor(0)
    return moving([moved(one), one.nbytes, one.numel])


def plain(name: str) -> str:
    """Return an op's name without its namespace, and without the underscore of what works in place."""
    short = name.rpartition("::")[2]
    return short if short in OPS or short in WRITING else short.removesuffix("_")


def broadcast(*operands: Operand) -> tuple[int, ...]:
    """Return the shape that operands broadcast to.

    Raises:
        NotRecorded: they do not, so that they are no operands of one operation.

    """
    sizes = []
    for at in zip_longest(*(reversed(one.shape) for one in operands), fillvalue=1):
        distinct = set(at) - {1}
        if len(distinct) > 1:
            raise NotRecorded(
                f"shapes {' and '.join(str(list(one.shape)) for one in operands)} do not broadcast"
            )
        sizes.append(distinct.pop() if distinct else 1)
    return tuple(reversed(sizes))


def _operands(call: Call, n: int) -> list[Operand]:
    """Return the tensors among the first arguments; the first two are one at least."""
    found = [one for at in range(n) if (one := call.optional(at)) is not None]
    if not found:
        raise NotRecorded(f"no input of {call.name} is a tensor of a known type")
    return found


def _numel(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _result_type(name: str, operands: list[Operand]) -> str:
    if name in _BOOLEAN:
        return "bool"
    if name == "where":  # the condition's type is not the result's
        operands = operands[1:] or operands
    word = promoted((o.dtype for o in operands if o.shape), (o.dtype for o in operands if not o.shape))
    assert word is not None
    if name in ("masked_fill", "native_dropout_backward"):
        word = operands[0].dtype
    return as_floating(word) if name in _NEVER_INTEGER else word
