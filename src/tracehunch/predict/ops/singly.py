"""Lists of tensors that no kernel takes together: each is worked on by itself.

Source: `check_fast_path_restrictions` in ATen/native/ForeachUtils.h; the "slow" functions that are taken
instead are in ATen/native/ForeachOpsKernels.cpp.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Final

from tracehunch.predict.ops.dtypes import COMPLEX, FLOATING
from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.steps import Call, Steps, copied, joined, like, pointwise, under
from tracehunch.predict.ops.tensor import Tensor, promoted

Lists = tuple[Sequence[Tensor], ...]

_NUMBERS: Final = ("scalar", "scalars", "value", "weight", "exponent", "alpha", "other", "self")
_KEEP_WHOLE: Final = ("abs", "neg", "sign", "zero", "ceil", "floor", "round", "trunc")
"""Operations on one list that whole numbers stay whole in."""


def lists_of(call: Call) -> Lists:
    """Return the lists that a call was given, in order; none where their sizes are not recorded."""
    lengths = list((call.option("list_lengths") or {}).values())
    ends = [0, *accumulate(lengths)]
    return tuple(call.tensors[first:last] for first, last in pairwise(ends))


def taken_singly(call: Call) -> bool:
    """Whether lists differ among each other or in themselves, so that each tensor has a kernel of its own."""
    lists = lists_of(call)
    if not lists or not lists[0] or len({len(one) for one in lists}) > 1 or call.name.startswith("_fused"):
        return False
    if call.name.startswith("_foreach_addcmul") and all(one.shape == () for one in lists[-1]):
        lists = lists[:-1]  # a number for each, as a tensor
    if not all(one.is_dense for tensors in lists for one in tensors):
        return True
    if any(not _alike(row) for row in zip(*lists, strict=True)):
        return True
    given = [one for tensors in lists for one in tensors]
    if call.name.startswith("_foreach_copy"):
        return any(len({one.dtype for one in tensors}) > 1 for tensors in lists)
    number = call.tensors[len(given) :]  # a tensor of one element, for all
    return len({one.dtype for one in (*given, *number)}) > 1 or _widened(call, given[0].dtype, len(lists))


def _alike(row: tuple[Tensor, ...]) -> bool:
    """Whether tensors have the sizes of the first and its strides; that of one element may be any."""
    first = row[0]
    return all(
        one.shape == first.shape
        and all(
            a == b for size, a, b in zip(first.shape, first.strides, one.strides, strict=True) if size != 1
        )
        for one in row[1:]
    )


def _widened(call: Call, dtype: str, lists: int) -> bool:
    """Whether whole numbers become others on the way."""
    if dtype in FLOATING or dtype in COMPLEX:
        return False
    plain = _plain(call.name)
    numbers = [one for name in _NUMBERS for one in _each(call.option(name)) if one is not None]
    alone = lists == 1 and not numbers and plain not in _KEEP_WHOLE
    return "div" in plain or alone or any(isinstance(one, float) for one in numbers)


def _each(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else (value,)


def singly(call: Call) -> Steps:
    """Run one kernel for each tensor of the first list, with those beside it in the others."""
    lists = lists_of(call)
    number = call.tensors[sum(len(one) for one in lists) :]
    return joined(
        _one(call.name.removeprefix("_foreach_"), (*row, *number)) for row in zip(*lists, strict=True)
    )


def _one(name: str, row: tuple[Tensor, ...]) -> Steps:
    first = row[0]
    if name == "zero_":
        return fill_kernel(first)
    if name.startswith("copy"):
        return copied(row[1], first)
    out = first if name.endswith("_") else like(row, promoted(*row))
    return under(f"aten::{name}", pointwise("", out, row, cast=len({one.dtype for one in row}) > 1))


def norms_singly(call: Call) -> Steps:
    """Reduce each tensor by itself."""
    return joined(
        under(
            "aten::linalg_vector_norm",
            reduction(one, tuple(range(len(one.shape))), call.sms, name="linalg_vector_norm"),
        )
        for one in call.tensors
    )


def _plain(name: str) -> str:
    return name.removeprefix("_foreach_").rstrip("_")
