"""Products of groups: rows that follow each other, or slices, each by a matrix of its own.

Hopper and datacenter Blackwell have a kernel for it in bfloat16. Everything else is multiplied group after
group, for which the ends of the groups are copied to the host (`_grouped_mm_fallback` in
ATen/native/GroupedMMUtils.h, from torch 2.9 on). How many rows a group has only values tell: they count as
even.
"""

from typing import Final

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.products import product_of
from tracehunch.predict.ops.steps import (
    COPY,
    Call,
    Step,
    Steps,
    fresh,
    joined,
    kernel,
    memcpy,
    under,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor

_BATCHED: Final = 3
_SET_UP_NS: Final = 3500  # of a grouped product: 159 of them on an H200
_WITH_KERNEL: Final = ((9, 0), (10, 0))
"""Compute capabilities of the GPUs that have a kernel for it."""
_ONE_BY_ONE: Final = (2, 9)  # the first torch that multiplies group after group


def grouped(call: Call) -> Steps:
    """Multiply groups: one kernel that prepares and one that multiplies, or one product a group."""
    env = call.env
    if call.first.dtype != "bf16" or (env is not None and env.compute_capability not in _WITH_KERNEL):
        if env is not None and env.torch < _ONE_BY_ONE:
            return unknown("before torch 2.9 grouped products are only done in bfloat16, on Hopper")
        return _one_by_one(call)
    groups, a, b = _pieces(call)
    a, b = (fresh((groups, *one.shape), one.dtype) for one in (a, b))
    if len(call.at(1).shape) == _BATCHED:
        b = call.at(1)
    _, product = product_of(a, b)
    run = Step("grouped", "GroupProblemShape", "gemm", items=_SET_UP_NS, product=product, library="cutlass")
    prepare = kernel("prepare_grouped_gemm_data", "gemm-helper", "tiny", 0)
    return joined([prepare, (run,)])


def _one_by_one(call: Call) -> Steps:
    if len(call.first.shape) == len(call.at(1).shape) == _BATCHED:
        before, product = product_of(call.first, call.at(1))
        return under("aten::bmm", joined([before, (Step("product", product=product),)]))
    groups, a, b = _pieces(call)
    ends = under(COPY, memcpy("dtoh", call.at(2).nbytes))
    filled = min(groups, _shared(call))
    before, product = product_of(a, b)
    each = under("aten::mm", joined([before, (Step("product", product=product),)]))
    nothing = () if _by_matrix(call) else fill_kernel(fresh((a.size(0), b.size(1)), a.dtype))
    return joined([ends, each * filled, nothing * (groups - filled)])


def _by_matrix(call: Call) -> bool:
    """Whether either side has a matrix for each group: a group without rows then makes nothing."""
    return _BATCHED in (len(call.first.shape), len(call.at(1).shape))


def _shared(call: Call) -> int:
    """Return the length of the dimension that the groups share."""
    if len(call.first.shape) == _BATCHED:
        return call.at(1).size(1)
    return call.first.size(0) if len(call.at(1).shape) == _BATCHED else call.first.size(1)


def _pieces(call: Call) -> tuple[int, Tensor, Tensor]:
    """Return how many groups there are, and the two matrices of one."""
    a, b = call.first, call.at(1)
    groups = next((one.size(0) for one in (a, b) if len(one.shape) == _BATCHED), 0) or call.at(2).size(0)
    each = max(-(-_shared(call) // max(groups, 1)), 1)
    if len(a.shape) == _BATCHED:
        across = b.size(1) if len(b.shape) == _BATCHED else each
        return groups, _matrix(a, a.size(1), a.size(2)), _matrix(b, b.size(-2), across)
    if len(b.shape) == _BATCHED:
        return groups, _matrix(a, each, a.size(1)), _matrix(b, b.size(1), b.size(2))
    return groups, _matrix(a, a.size(0), each), _matrix(b, each, b.size(1))


def _matrix(one: Tensor, rows: int, columns: int) -> Tensor:
    return Tensor((rows, columns), one.dtype, one.strides[-2:])
