"""Reductions, softmax and scans: an input, and a result that lost dimensions, or none."""

import math
from collections.abc import Callable
from typing import Final

from tracehunch.facts.work.dtypes import as_floating, is_floating, stated_dtype
from tracehunch.facts.work.inputs import Call, NotRecorded, Operand
from tracehunch.facts.work.pointwise import out_of_place, plain
from tracehunch.facts.work.work import Work, elements, moved, moving

_INDEX_BYTES: Final = 8  # of the int64 that argmax, topk and sort return
_SUMS: Final = frozenset({"sum", "nansum", "prod", "cumsum", "cumprod"})
_SELECTED: Final = frozenset({"amax", "amin", "max", "min"})


def reduction(
    *, dims: int = 1, dtype: int | None = None, result: str = "", indices: bool = False
) -> Callable[[Call], Work]:
    """Return the formula of a reduction over the dimensions at a position, over all where none are given.

    ``dtype`` is the position of the result's type, which the variant without dimensions has behind the input;
    ``result`` that type where it never is the input's; ``indices`` whether they are returned, too.
    """

    def work(call: Call) -> Work:
        one = call.tensor(0)
        whole = len(call.inputs) <= dims + 1  # the dimensions never come last: a flag follows them
        left = 0 if whole else _left(one, call.integers(dims), call.name)
        stated = stated_dtype(call.value(1 if whole else dtype)) if dtype is not None else None
        word = result or stated or _widened(plain(call.name), one.dtype)
        return moving([moved(one), elements(left, word), _INDEX_BYTES * left if indices else 0])

    return work


def extremum(call: Call) -> Work:
    """``max`` and ``min``: of two tensors, of one, or along a dimension with the indices."""
    if call.optional(1) is not None:
        return out_of_place(Call("aten::maximum", call.inputs, call.values))
    return reduction(indices=len(call.inputs) > 1)(call)


def normalised(call: Call) -> Work:
    """Softmax: read the input; write a result of its size, in float32 where the third argument says so."""
    one, out = call.tensor(0), call.out(1)
    widened = one.dtype in ("bf16", "fp16") and out is None and call.flag(2)
    word = out.dtype if out is not None else "fp32" if widened else one.dtype
    return moving([moved(one), elements(one.numel, word)])


def normalised_backward(call: Call) -> Work:
    """Softmax's gradient: read the result's and the result; write the input's, in the input's type."""
    grad, result = call.tensor(0), call.tensor(1)
    word = stated_dtype(call.value(3)) or result.dtype
    return moving([moved(grad, result), elements(result.numel, word)])


def scan(call: Call) -> Work:
    """``cumsum``: read the input, write a result of its size."""
    one = call.tensor(0)
    word = stated_dtype(call.value(2)) or _widened(plain(call.name), one.dtype)
    return moving([moved(one), elements(one.numel, word)])


def sort(call: Call) -> Work:
    """Read the values, write them and their indices, each once."""
    one = call.tensor(0)
    return moving([moved(one), one.nbytes, _INDEX_BYTES * one.numel])


def topk(call: Call) -> Work:
    """Read the values, write the largest and their indices."""
    one, k = call.tensor(0), call.integer(1)
    dims = call.integers(2) or (-1,)
    kept = one.numel // max(one.shape[dims[0]], 1) * k
    return moving([moved(one), elements(kept, one.dtype), _INDEX_BYTES * kept])


def same_size(call: Call) -> Work:
    """Read the input, write a result of its size and type: ``tril``, ``flip``, ``roll``."""
    one = call.tensor(0)
    return moving([moved(one), one.nbytes])


def _left(one: Operand, dims: tuple[int, ...], name: str) -> int:
    """Return how many elements a reduction leaves; a result without dimensions counts none."""
    rank = len(one.shape)
    if any(not -rank <= dim < max(rank, 1) for dim in dims):
        raise NotRecorded(f"the dimensions of {name} are none of its input")
    lost = {dim % rank for dim in dims} if rank else set()
    return math.prod(size for at, size in enumerate(one.shape) if at not in lost) if lost else 0


def _widened(name: str, word: str) -> str:
    """Return the type of a result: sums of integers are int64, means of them float32."""
    if is_floating(word):
        return word
    return "int64" if name in _SUMS else word if name in _SELECTED else as_floating(word)
