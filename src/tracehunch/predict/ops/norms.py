"""Norms of rows and of groups of channels, forward and backward."""

from typing import Final

from tracehunch.predict.ops.steps import Call, Steps, contiguous, fresh, joined, kernel, pointwise, unknown

_VECTOR: Final = 4  # elements that a norm's vectorised kernel reads at once
_BLOCK: Final = 512  # threads that work on a row, however short it is
_FUSED_RMS: Final = (2, 9)  # the first torch whose rms_norm is one kernel where it was looked at
_FLOPS: Final = 8  # of an element
_CHANNELS: Final = 1


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
        # mean and variance take longer than the mean of squares
        family = "norm" if "rms" in call.name else "norm_moments"
        run = kernel(
            "vectorized_layer_norm_kernel", "layer-norm", family, moved, flops=_FLOPS * one.numel,
            dtype=one.dtype, items=_occupied(one.numel, row), serial=row,
        )  # fmt: skip
        return joined([before, run])
    moments = kernel(
        "RowwiseMomentsCUDAKernel",
        "layer-norm",
        "moments",
        one.nbytes,
        flops=4 * one.numel,
        dtype=one.dtype,
        items=_occupied(one.numel, row),
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


def layer_norm_backward(call: Call) -> Steps:
    """Derive a norm: one kernel for the input's gradient, one for those of weight and bias.

    `output_mask` says which are asked for; without it, those of weights that are given.
    """
    one = call.at(1)
    if one.numel == 0:
        return ()
    asked = call.option("output_mask") or (True, call.option("weights", len(call.tensors) > 2), False)
    vector = one.size(-1) % _VECTOR == 0
    text = f"layer_norm_grad_input_kernel{'_vectorized' if vector else ''}"
    of_input = kernel(
        text, "layer-norm-backward", "norm", 3 * one.nbytes, flops=_FLOPS * one.numel, dtype=one.dtype,
        items=_occupied(one.numel, one.size(-1)), serial=one.size(-1),
    )  # fmt: skip
    of_weights = kernel(
        "GammaBetaBackwardCUDAKernelTemplate", "layer-norm-backward", "norm_weights", 2 * one.nbytes,
        flops=4 * one.numel, dtype=one.dtype, items=one.numel, serial=one.numel // max(one.size(-1), 1),
    )  # fmt: skip
    return joined([of_input if asked[0] else (), of_weights if any(asked[1:]) else ()])


def group_norm(call: Call) -> Steps:
    """Normalise groups of channels: moments, weights folded in where there are some, the normalisation."""
    before, one = contiguous(call.first)
    if one.numel == 0:
        return ()
    row = one.numel // max(one.size(0) * int(call.option("num_groups", call.option("group", 1))), 1)
    moments = kernel(
        "RowwiseMomentsCUDAKernel",
        "group-norm",
        "moments",
        one.nbytes,
        flops=4 * one.numel,
        dtype=one.dtype,
        items=_occupied(one.numel, row),
        serial=row,
    )
    apply = pointwise("GroupNormKernelImpl", one, [one], flops=4)
    fused = kernel("ComputeFusedParamsCUDAKernel", "group-norm", "tiny", 0) if len(call.tensors) > 1 else ()
    return joined([before, moments, fused, apply])


def group_norm_backward(call: Call) -> Steps:
    """Derive a norm of groups with weights: sums by channel, their shares, the input's, the weights'."""
    one = call.at(1)
    if one.numel == 0:
        return ()
    positions = one.numel // max(one.size(0) * one.size(_CHANNELS), 1)
    sums = kernel(
        "ComputeInternalGradientsCUDAKernel", "group-norm-backward", "moments", 2 * one.nbytes,
        flops=4 * one.numel, dtype=one.dtype, items=_occupied(one.numel, positions), serial=positions,
    )  # fmt: skip
    small = fresh((one.size(0), one.size(_CHANNELS)), "fp32")
    return joined(
        [
            sums,
            pointwise("GroupNormBackwardKernelImpl", small, [small]),
            kernel("ComputeBackwardFusedParamsCUDAKernel", "group-norm-backward", "tiny", 0),
            pointwise("GroupNormBackwardKernelImpl", one, [one, one], flops=4),
            kernel("GammaBetaBackwardCUDAKernel1", "group-norm-backward", "tiny", 0),
        ]
    )


def _occupied(count: int, row: int) -> int:
    """Return elements with rows filled up to the threads that work on one."""
    return count // max(row, 1) * max(row, _BLOCK)
