"""Operations on whole rows: softmax, norms and losses."""

from typing import Final

from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.ops.elementwise import fill_kernel
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.registry import handles
from tracehunch.predict.ops.steps import (
    Call,
    Steps,
    contiguous,
    fresh,
    joined,
    kernel,
    like,
    pointwise,
    unknown,
)
from tracehunch.predict.ops.tensor import Tensor

_IN_WARP: Final = 2048  # longest row that one warp keeps in registers, forward
_IN_WARP_BACK: Final = 1024
_VECTOR: Final = 4  # elements that a norm's vectorised kernel reads at once
_FUSED_RMS: Final = (2, 9)  # the first torch whose rms_norm is one kernel where it was looked at
_BLOCK: Final = 1024  # threads
_LOSSES: Final = 16  # rows that a thread of the loss takes, once there are enough
_FLOPS: Final = 8  # of softmax and norms, each element


@handles("softmax", "log_softmax", "_softmax", "_log_softmax", "softmin", "special_softmax")
def softmax(call: Call) -> Steps:
    """Normalise exponentials: one kernel, converting fp16 to fp32 on the way; bf16 is converted before."""
    one = call.first
    if one.numel == 0:
        return ()
    before, one = contiguous(one)
    wanted = call.option("dtype")
    out = one.dtype if wanted is None else dtype_word(str(wanted))
    steps = [before]
    if out != one.dtype and not (one.dtype == "fp16" and out == "fp32"):
        made = fresh(one.shape, out)
        steps.append(pointwise("direct_copy_kernel_cuda", made, [one], flops=0, algorithm="copy", cast=True))
        one = made
    result = fresh(one.shape, out)
    steps.append(_softmax_kernel(one, result, call.option("dim", -1)))
    return joined(steps)


def _softmax_kernel(one: Tensor, out: Tensor, dim: int) -> Steps:
    last = not one.shape or dim % len(one.shape) == len(one.shape) - 1
    serial = one.size(dim)
    if not last:
        text, family = "cunn_SpatialSoftMaxForward", "softmax_across"
        inner = one.strides[dim]
        serial = -(-serial // max(1, _BLOCK // inner))
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


@handles("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(call: Call) -> Steps:
    """Derive softmax: one kernel; softmax's own first multiplies gradient and output."""
    grad = call.first
    if grad.numel == 0:
        return ()
    product = (
        pointwise("BinaryFunctor", like([grad], grad.dtype), (grad, grad)) if call.name[1] == "s" else ()
    )
    text = "softmax_warp_backward" if grad.size(-1) <= _IN_WARP_BACK else "cunn_SoftMaxBackward"
    run = kernel(
        text,
        "softmax",
        "softmax_block",
        3 * grad.nbytes,
        flops=_FLOPS * grad.numel,
        dtype=grad.dtype,
        items=grad.numel,
        serial=grad.size(-1),
    )
    return joined([product, run])


@handles("layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm")
def layer_norm(call: Call) -> Steps:
    """Normalise rows: one vectorised kernel where the row is a multiple of four, else two."""
    one = call.first
    if one.numel == 0:
        return ()
    before, one = contiguous(one)
    shape = call.option("normalized_shape")
    row = one.size(-1)
    if shape is not None:
        row = 1
        for size in (shape,) if isinstance(shape, int) else shape:
            row *= size
    if call.name == "rms_norm" and call.env is not None and call.env.torch < _FUSED_RMS:
        return unknown("rms_norm of this torch version was not looked at")
    weights = sum(other.nbytes for other in call.tensors[1:])
    moved = 2 * one.nbytes + weights
    if row % _VECTOR == 0:
        text = "vectorized_layer_norm_kernel"
        return joined(
            [
                before,
                kernel(
                    text,
                    "layer-norm",
                    "norm",
                    moved,
                    flops=_FLOPS * one.numel,
                    dtype=one.dtype,
                    items=one.numel,
                    serial=row,
                ),
            ]
        )
    moments = kernel(
        "RowwiseMomentsCUDAKernel",
        "layer-norm",
        "moments",
        one.nbytes,
        flops=4 * one.numel,
        dtype=one.dtype,
        items=one.numel,
        serial=row,
    )
    forward = kernel(
        "LayerNormForwardCUDAKernel",
        "layer-norm",
        "norm",
        moved,
        flops=4 * one.numel,
        dtype=one.dtype,
        items=one.numel,
        serial=row,
    )
    return joined([before, moments, forward])


@handles("group_norm", "native_group_norm")
def group_norm(call: Call) -> Steps:
    """Normalise groups of channels: moments, weights folded in where there are some, the normalisation."""
    before, one = contiguous(call.first)
    if one.numel == 0:
        return ()
    moments = kernel(
        "RowwiseMomentsCUDAKernel",
        "group-norm",
        "moments",
        one.nbytes,
        flops=4 * one.numel,
        dtype=one.dtype,
        items=one.numel,
        serial=one.numel // max(one.size(0) * int(call.option("num_groups", 1)), 1),
    )
    apply = pointwise("GroupNormKernelImpl", one, [one], flops=4)
    fused = kernel("ComputeFusedParamsCUDAKernel", "group-norm", "tiny", 0) if len(call.tensors) > 1 else ()
    return joined([before, moments, fused, apply])


@handles("cross_entropy", "cross_entropy_loss")
def cross_entropy(call: Call) -> Steps:
    """Logarithm of softmax, then the loss over rows."""
    one = call.first
    logits = softmax(Call("log_softmax", (one,), {"dim": 1 if len(one.shape) > 1 else 0}, call.env))
    return joined([logits, nll_loss(call)])


@handles("nll_loss", "nll_loss_nd", "nll_loss_forward")
def nll_loss(call: Call) -> Steps:
    """Pick and average: one kernel."""
    rows = call.first.size(0)
    text = "nll_loss_forward_reduce_cuda_kernel_2d"
    if len(call.first.shape) > 2:  # (batch, classes) is what was measured
        return unknown("nll_loss over positions was not measured")
    threads = min(max(rows // _LOSSES, 32), _BLOCK)
    return kernel(text, "loss", "loss", rows * (8 + 32), dtype=call.first.dtype, serial=-(-rows // threads))


@handles("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def mse_loss(call: Call) -> Steps:
    """Difference element by element, then the mean."""
    out = like(call.tensors, call.first.dtype)
    each = pointwise("", out, call.tensors, flops=2)
    if call.option("reduction", "mean") == "none":
        return each
    return joined([each, reduction(out, tuple(range(len(out.shape))), call.sms)])


@handles("binary_cross_entropy_with_logits")
def bce_with_logits(call: Call) -> Steps:
    """Composed of five kernels element by element and the mean."""
    one = fresh(call.first.shape, call.first.dtype)
    parts = [pointwise("", one, [one, one]), fill_kernel(one)]
    parts += [pointwise("", one, [one, one])] * 3
    return joined([*parts, reduction(one, tuple(range(len(one.shape))), call.sms)])


@handles("native_layer_norm_backward")
def layer_norm_backward(call: Call) -> Steps:
    """Derive a norm: the input's gradient in one kernel; the weights' were not measured."""
    if call.option("weights", len(call.tensors) > 2):  # grad, input, then weight
        return unknown("the backward of layer_norm with weights was not measured")
    one = call.at(1)
    family = "norm"
    text = "layer_norm_grad_input_kernel"
    return kernel(
        text,
        "layer-norm-backward",
        family,
        3 * one.nbytes,
        flops=_FLOPS * one.numel,
        dtype=one.dtype,
        items=one.numel,
        serial=one.size(-1),
    )


@handles("scaled_dot_product_attention")
def attention(call: Call) -> Steps:
    """Refer to the prediction that knows backends."""
    return unknown(f"{call.name} depends on the backend: ask predict_attention")
