"""Operations that work element by element, and those that fill tensors."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from tracehunch.predict.ops.dtypes import COMPLEX, FLOATING, stored_word
from tracehunch.predict.ops.nonzero import nonzero_steps
from tracehunch.predict.ops.steps import (
    COPY,
    FILL,
    Call,
    Steps,
    copied,
    fresh,
    joined,
    kernel,
    like,
    memcpy,
    pointwise,
    under,
)
from tracehunch.predict.ops.tensor import Tensor, broadcast, promoted

_BOOLEAN: Final = frozenset(
    [
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "isnan",
        "isinf",
        "isfinite",
        "isneginf",
        "isposinf",
        "logical_not",
        "logical_and",
        "logical_or",
        "logical_xor",
        "signbit",
    ]
)
_OPERATORS: Final = {
    "__and__": "bitwise_and", "__or__": "bitwise_or", "__xor__": "bitwise_xor", "__iand__": "bitwise_and",
    "__ior__": "bitwise_or", "__ixor__": "bitwise_xor",
}  # fmt: skip
"""Python's operators as ATen's ops are named after them."""

_TO_FLOAT: Final = frozenset(
    [
        "div",
        "true_divide",
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sqrt",
        "rsqrt",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "erf",
        "erfc",
        "erfinv",
        "sigmoid",
        "reciprocal",
        "atan2",
        "silu",
        "gelu",
    ]
)
_DEFAULT: Final = "fp32"
_FROM_TO: Final = (("start", 0), ("end", 0), ("step", 1))


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Any]:
    return tomllib.loads((files(__package__) / "pointwise.toml").read_text(encoding="utf-8"))


def _arithmetic() -> dict[str, int]:
    return {name: int(count) for count, names in _table()["flops"].items() for name in names}


def elementwise(call: Call) -> Steps:
    """Run one kernel over all inputs, broadcast; in place where the name ends in an underscore."""
    call = _without_buffers(call)
    name = _OPERATORS.get(call.name, call.name.rstrip("_"))
    flops = _arithmetic()[name]
    if name == "pow" and len(call.tensors) == 1 and call.option("exponent") in (0, 1):
        return _trivial_power(call)
    text = _table()["hints"].get(name, "")
    if (call.name.endswith("_") and call.name not in _OPERATORS) or call.name.startswith("__i"):
        out = call.first
        broadcast(out.shape, *(one.shape for one in call.tensors[1:]))
    else:
        dtype = promoted(*call.tensors)
        if name in _BOOLEAN:
            dtype = "bool"
        elif name in _TO_FLOAT and dtype not in FLOATING and dtype not in COMPLEX:
            dtype = _DEFAULT
        out = like(call.tensors, dtype)
    return pointwise(text, out, call.tensors, flops=flops, cast=_casts(call.tensors))


def _without_buffers(call: Call) -> Call:
    """Leave out what only a CPU keeps, an empty tensor, as the buffer of `log_sigmoid_backward`."""
    if not call.tensors or call.first.numel == 0:
        return call
    return replace(call, tensors=tuple(one for one in call.tensors if one.shape != (0,)))


def _trivial_power(call: Call) -> Steps:
    """Fill with ones for the exponent 0, copy for 1."""
    one = call.first
    out = one if call.name.endswith("_") else like([one], one.dtype)
    if call.option("exponent") == 0:
        return fill_kernel(out)
    return () if out is one else copied(one, out)


def _casts(inputs: tuple[Tensor, ...]) -> bool:
    """Whether inputs have several types, which the kernel converts on the way."""
    return len({one.dtype for one in inputs if one.shape}) > 1


def arithmetic_names() -> tuple[str, ...]:
    """Return the names of all elementwise operations, out of place and in place, and Python's for them."""
    names = tuple(one for name in _arithmetic() for one in (name, f"{name}_"))
    return (*names, *_OPERATORS)


def masked_fill_in_place(call: Call) -> Steps:
    """Write a scalar where the mask says: one kernel over self and mask."""
    return pointwise("masked_fill_kernel", call.first, (call.first, call.at(1)), flops=0)


def masked_fill(call: Call) -> Steps:
    """Copy self, then fill the copy in place."""
    shape = broadcast(call.first.shape, call.at(1).shape)
    seen = call.first if call.first.shape == shape else call.first.expanded(shape)
    out = like([seen], seen.dtype)
    filled = pointwise("masked_fill_kernel", out, (out, call.at(1)), flops=0)
    return joined([copied(seen, out), under("aten::masked_fill_", filled)])


def where(call: Call) -> Steps:
    """Choose by condition; a Python number in place of a tensor is first made one, on the device.

    With the condition alone it is `nonzero`.
    """
    numbers = sum(call.option(name) is not None for name in ("input", "self", "other"))
    chosen = call.tensors[1:]
    if not chosen and not numbers:
        return nonzero_steps(call.first)
    dtype = promoted(*chosen) if chosen else _DEFAULT
    made = (fill_kernel(fresh((), dtype)),) * numbers
    shape = broadcast(*(one.shape for one in call.tensors))
    out = fresh(shape, dtype) if numbers else like(call.tensors, dtype)
    scalars = [fresh((), dtype) for _ in range(numbers)]
    run = pointwise("where_kernel_impl", out, (*call.tensors, *scalars), flops=0, cast=_casts(chosen))
    return joined([*made, run])


def fill_kernel(out: Tensor) -> Steps:
    """Return the kernel that writes one value to all elements."""
    if out.numel == 0:
        return ()
    family = "fill" if out.is_dense else "strided"
    return under(FILL, kernel("FillFunctor", "fill", family, out.nbytes, dtype=out.dtype))


def fill(call: Call) -> Steps:
    """Write one value."""
    return fill_kernel(call.first)


def create(call: Call) -> Steps:
    """Allocate, then fill."""
    return fill_kernel(_created(call))


def _created(call: Call) -> Tensor:
    """Return the new tensor: shape and type from options, or like the first tensor."""
    given = call.option("dtype")
    template = call.tensors[0] if call.tensors else None
    dtype = stored_word(str(given)) if given is not None else template.dtype if template else _DEFAULT
    size = call.option("size")
    if size is not None:
        return fresh(size, dtype)
    return like([template], dtype) if template else fresh((), dtype)


def arange(call: Call) -> Steps:
    """Write the elements' numbers: one kernel."""
    out = _created(call)
    if call.option("size") is None and call.option("end") is not None:
        out = fresh((_counted(call),), out.dtype)
    return (
        kernel("elementwise_kernel_with_index", "index", "fill", out.nbytes, dtype=out.dtype)
        if out.numel
        else ()
    )


def _counted(call: Call) -> int:
    """Return how many numbers lie between start and end."""
    start, end, step = (float(call.option(name, default)) for name, default in _FROM_TO)
    return max(math.ceil((end - start) / step), 0)


def random(call: Call) -> Steps:
    """Draw random numbers: one kernel."""
    out = call.first if call.name.endswith("_") else _created(call)
    if out.numel == 0:
        return ()
    return kernel(
        "distribution_elementwise_grid_stride_kernel", "random", "random", out.nbytes,
        flops=out.numel, dtype=out.dtype, items=out.numel,
    )  # fmt: skip


def triangle(call: Call) -> Steps:
    """Clear one triangle: one kernel."""
    out = call.first
    return (
        kernel(
            "triu_tril_kernel", "elementwise", "triangle", 2 * out.nbytes, dtype=out.dtype, items=out.numel
        )
        if out.numel
        else ()
    )


def dropout(call: Call) -> Steps:
    """Draw a mask and apply it, in one kernel; nothing when not training or with p = 0."""
    skipped = False in (call.option("training"), call.option("train")) or call.option("p") == 0
    if skipped or call.first.numel == 0:
        return ()
    moved = 2 * call.first.nbytes + call.first.numel
    return kernel(
        "fused_dropout_kernel",
        "dropout",
        "dropout",
        moved,
        flops=2 * call.first.numel,
        dtype=call.first.dtype,
        items=call.first.numel,
    )


def clone(call: Call) -> Steps:
    """Copy in the same memory order: a memcpy unless elements are repeated, apart or to be conjugated."""
    source = call.first
    keeps = call.option("memory_format", "preserve") != "contiguous"
    out = like([source], source.dtype) if keeps else fresh(source.shape, source.dtype)
    if call.option("conjugated"):
        return under(COPY, pointwise("conj_kernel_cuda", out, [source], algorithm="copy"))
    return copied(source, out)


def contiguous_op(call: Call) -> Steps:
    """Copy to row-major order, unless it is that already."""
    if call.first.is_contiguous:
        return ()
    return copied(call.first, fresh(call.first.shape, call.first.dtype))


def copy_in_place(call: Call) -> Steps:
    """Copy the second tensor into the first."""
    source = call.at(1)
    return copied(
        source if source.shape == call.first.shape else source.expanded(call.first.shape), call.first
    )


def to(call: Call) -> Steps:
    """Convert: nothing where the type is right already."""
    own = {"type_as": None, "to": None, "_to_copy": None, "type": None}
    given = call.option("dtype") if call.name in own else call.name
    if given is None and len(call.tensors) > 1:
        given = call.at(1).dtype
    dtype = call.first.dtype if given is None else stored_word(str(given))
    if dtype == call.first.dtype and not call.option("copy", call.name == "_to_copy"):
        return ()
    return copied(call.first, like([call.first], dtype))


def to_host(call: Call) -> Steps:
    """Copy to the host, made contiguous on the GPU first where it is not."""
    if call.first.numel == 0:
        return ()
    packed = () if call.first.is_dense else copied(call.first, fresh(call.first.shape, call.first.dtype))
    return joined([packed, memcpy("dtoh", call.first.nbytes)])


def to_device(call: Call) -> Steps:
    """Copy from the host to the GPU."""
    return memcpy("htod", call.first.nbytes) if call.first.numel else ()


def item(call: Call) -> Steps:
    """Copy one element to the host."""
    return memcpy("dtoh", call.first.itemsize)
