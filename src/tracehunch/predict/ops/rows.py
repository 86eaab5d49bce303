"""Softmax, and what stands for attention."""

from typing import Final

from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    contiguous,
    copied,
    fresh,
    joined,
    kernel,
    like,
    pointwise,
    under,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor

_IN_WARP: Final = 2048  # longest row that one warp keeps in registers, forward
_IN_WARP_BACK: Final = 1024
_BLOCK: Final = 1024  # threads
_FLOPS: Final = 8  # of an element


def softmax(call: Call) -> Steps:
    """Normalise exponentials: one kernel, converting fp16 to fp32 on the way; bf16 is converted before."""
    one = call.first
    if one.numel == 0:
        return ()
    before, one = contiguous(one)
    wanted = "fp32" if call.option("half_to_float") else call.option("dtype")
    out = one.dtype if wanted is None else dtype_word(str(wanted))
    steps = [before]
    if out != one.dtype and not (one.dtype == "fp16" and out == "fp32"):
        made = fresh(one.shape, out)
        steps.append(copied(one, made))
        one = made
    result = fresh(one.shape, out)
    steps.append(_softmax_kernel(one, result, call.option("dim", -1)))
    return joined(steps)


def _softmax_kernel(one: Tensor, out: Tensor, dim: int) -> Steps:
    last = not one.shape or dim % len(one.shape) == len(one.shape) - 1
    serial = one.size(dim)
    if not last:
        text, family = "cunn_SpatialSoftMaxForward", "softmax_across"
        serial = _each(serial, one.strides[dim])
    elif one.size(-1) <= _IN_WARP:
        text, family = "softmax_warp_forward", "softmax_warp"
    else:
        text, family = "cunn_SoftMaxForward", "softmax_block"
    return kernel(
        text,
        "softmax",
        family,
        one.nbytes + out.nbytes,
        flops=_FLOPS * one.numel,
        dtype=one.dtype,
        items=one.numel,
        serial=serial,
    )


def _each(size: int, inner: int) -> int:
    """Return the elements of a thread, where threads share a column as long as there are few columns."""
    return -(-size // max(1, _BLOCK // max(inner, 1)))


def softmax_backward(call: Call) -> Steps:
    """Derive softmax: one kernel; softmax's own first multiplies gradient and output."""
    grad = call.first
    if grad.numel == 0:
        return ()
    product: Steps = ()
    if call.name[1] == "s":
        product = under("aten::mul", pointwise("BinaryFunctor", like([grad], grad.dtype), (grad, grad)))
    last = call.option("dim", -1) % max(len(grad.shape), 1) == len(grad.shape) - 1
    text = "softmax_warp_backward" if grad.size(-1) <= _IN_WARP_BACK else "cunn_SoftMaxBackward"
    text = text if last else "cunn_SpatialSoftMaxBackward"
    serial = grad.size(call.option("dim", -1))
    run = kernel(
        text,
        "softmax",
        "softmax_block" if last else "softmax_across",
        3 * grad.nbytes,
        flops=_FLOPS * grad.numel,
        dtype=grad.dtype,
        items=grad.numel,
        serial=serial if last else _each(serial, grad.strides[call.option("dim", -1)]),
    )
    return joined([product, run])


def safe_softmax(call: Call) -> Steps:
    """Softmax, and zeros for rows of nothing but -inf: they are looked for in the scores."""
    one = call.first
    dim = call.option("dim", -1)
    flags = like([one], "bool")
    kept = [1 if at == dim % len(one.shape) else size for at, size in enumerate(one.shape)]
    rows = fresh(kept, "bool")
    chosen = like([one], one.dtype)
    return joined(
        [
            softmax(Call("_softmax", call.tensors, call.options, call.env)),
            pointwise("isneginf_kernel_impl", flags, [one]),
            reduction(flags, (dim % len(one.shape),), call.sms),
            fill_kernel(fresh((), one.dtype)),
            pointwise("where_kernel_impl", chosen, [rows, fresh((), one.dtype), one], flops=0),
        ]
    )


def attention(call: Call) -> Steps:
    """Refer to the prediction that knows backends."""
    return unknown(f"{call.name} depends on the backend: ask predict_attention")
