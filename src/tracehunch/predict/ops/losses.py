"""Losses, forward and backward."""

from typing import Final

from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.rows import softmax
from tracehunch.predict.ops.steps import Call, Steps, fresh, joined, kernel, like, pointwise, unknown
from tracehunch.predict.ops.tensor import Tensor

_BLOCK: Final = 1024  # threads
_LOSSES: Final = 16  # rows that a thread of the loss takes, once there are enough
_ROWS: Final = 2  # dimensions of (batch, classes); more are positions
_REDUCTIONS: Final = ("none", "mean", "sum")
"""In the order of ATen's numbers."""


def cross_entropy(call: Call) -> Steps:
    """Logarithm of softmax, then the loss, and what smooths labels."""
    one = call.first
    logits = softmax(Call("log_softmax", (one,), {"dim": _classes(one)}, call.env))
    smooth = float(call.option("label_smoothing", 0.0) or 0.0)
    made = fresh(one.shape, one.dtype)
    loss = nll_loss(Call(call.name, (made, *call.tensors[1:]), call.options, call.env))
    if not smooth:
        return joined([logits, loss])
    if len(one.shape) > _ROWS or len(call.tensors) > 2:  # input, target, then weights of classes
        return unknown("label smoothing was looked at for (batch, classes) without weights")
    return joined([logits, loss, _smoothed(one, _reduction(call), call.sms)])


def _smoothed(one: Tensor, how: str, sms: int) -> Steps:
    """Sum the logarithms of all classes, leave out ignored targets, and mix with the loss."""
    rows, result = fresh((one.size(0),), one.dtype), fresh((), one.dtype)
    flags, counted = fresh((one.size(0),), "bool"), fresh((one.size(0),), "int64")
    parts = [
        reduction(one, (len(one.shape) - 1,), sms),
        pointwise("neg_kernel_cuda", rows, [rows]),
        pointwise("CompareEqFunctor", flags, [counted]),
        pointwise("masked_fill_kernel", rows, [rows, flags], flops=0),
    ]
    if how == "mean":
        parts += [
            pointwise("bitwise_not_kernel_cuda", flags, [flags]),
            pointwise("direct_copy_kernel_cuda", counted, [flags], flops=0, algorithm="copy", cast=True),
            reduction(counted, (0,), sms),
            reduction(rows, (0,), sms),
            pointwise("DivFunctor", result, [result, result]),
        ]
    elif how == "sum":
        parts.append(reduction(rows, (0,), sms))
    mixed = rows if how == "none" else result
    parts += [pointwise("MulFunctor", mixed, [mixed])] * 2
    return joined([*parts, pointwise("CUDAFunctor_add", mixed, [mixed, mixed])])


def nll_loss(call: Call) -> Steps:
    """Pick and average: one kernel for rows; over positions the sums are cleared before and divided after."""
    one = call.first
    rows, how = one.numel // max(one.size(_classes(one)), 1), _reduction(call)
    if one.numel == 0:
        return ()
    threads = min(max(rows // _LOSSES, 32), _BLOCK)
    moved, serial = rows * (8 + 32), -(-rows // threads)
    if len(one.shape) <= _ROWS:
        if how != "none":
            text = "nll_loss_forward_reduce_cuda_kernel"
            return kernel(text, "loss", "loss", moved, dtype=one.dtype, serial=serial)
        weight = fill_kernel(fresh((), one.dtype))
        each = kernel("nll_loss_forward_no_reduce_cuda_kernel", "loss", "gather_few", moved, items=rows)
        return joined([weight, each])
    if how == "none":
        return kernel("nll_loss2d_forward_no_reduce_kernel", "loss", "gather_few", moved, items=rows)
    zero = fill_kernel(fresh((), one.dtype))
    picked = kernel("nll_loss2d_forward_kernel", "loss", "gather_few", moved, dtype=one.dtype, items=rows)
    mean = kernel("nll_loss2d_forward_size_average_kernel", "loss", "tiny", 0) if how == "mean" else ()
    return joined([zero, zero, picked, mean])


def nll_loss_backward(call: Call) -> Steps:
    """Fill the gradient with zeros, then write one element of each row."""
    one = call.at(1)
    rows, how = one.numel // max(one.size(_classes(one)), 1), _reduction(call)
    if one.numel == 0:
        return ()
    name = f"nll_loss{'2d' if len(one.shape) > _ROWS else ''}_backward{'_no' if how == 'none' else ''}_reduce"
    text = "nll_loss2d_backward_kernel" if len(one.shape) > _ROWS and how != "none" else name
    # the average of rows is one block's work
    alone = len(one.shape) <= _ROWS and how != "none"
    family, serial = ("loss_backward", -(-rows // 32)) if alone else ("scatter_few", 0)
    moved = rows * (8 + 32)
    picked = kernel(text, "loss-backward", family, moved, dtype=one.dtype, items=rows, serial=serial)
    return joined([fill_kernel(one), picked])


def _classes(one: Tensor) -> int:
    return 1 if len(one.shape) > 1 else 0


def _reduction(call: Call) -> str:
    """Return how losses are put together; traces have ATen's number."""
    given = call.option("reduction", "mean")
    return _REDUCTIONS[given] if isinstance(given, int) else str(given)


def mse_loss(call: Call) -> Steps:
    """Difference element by element, then the mean."""
    out = like(call.tensors, call.first.dtype)
    each = pointwise("", out, call.tensors, flops=2)
    if _reduction(call) == "none":
        return each
    return joined([each, reduction(out, tuple(range(len(out.shape))), call.sms)])
